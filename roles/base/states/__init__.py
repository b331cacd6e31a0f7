"""States that a role of more than one layer yields."""
