"""SBOMs: the software on a host, and the origin of the software."""
