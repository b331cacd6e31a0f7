"""Prints plans, and results of runs that changed hosts."""
