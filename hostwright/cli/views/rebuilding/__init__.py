"""Views of rebuilds: decisions, results, and durations."""
