"""States that roles of several layers yield."""
