"""Algorithms: Problem -> Result."""
