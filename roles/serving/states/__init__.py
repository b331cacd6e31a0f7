"""Facts about models on a host, and the states that serve the declared models."""
