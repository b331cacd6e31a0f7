"""Resources that roles of several layers use."""
