"""Optimality-gap checks in pytest (a plugin)."""
