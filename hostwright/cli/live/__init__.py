"""A run as it happens: a table of hosts that redraws itself in a terminal, one line per event elsewhere."""
