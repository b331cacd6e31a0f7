"""Programs for the Python of an environment on a host: each is sent as one file, and none is imported."""
