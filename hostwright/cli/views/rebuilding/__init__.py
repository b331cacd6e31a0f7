"""Prints rebuilds: decisions, results, and durations."""
