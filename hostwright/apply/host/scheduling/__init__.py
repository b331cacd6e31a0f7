"""The order in which a host's roles run, and their waits for each other."""
