"""States that only the driver needs."""
