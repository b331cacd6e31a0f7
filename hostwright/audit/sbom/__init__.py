"""SBOMs: the software on a host, and its origin."""
