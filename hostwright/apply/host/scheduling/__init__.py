"""The order in which a host's roles run, and how they wait for each other."""
