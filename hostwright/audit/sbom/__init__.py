"""SBOMs: what software is on a host, and where it came from."""
