"""Prints rebuilds: the decision for each host, the results, and durations."""
