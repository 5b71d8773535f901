"""Helpers that tests share; written without the library, so that two readings of the rules exist."""
