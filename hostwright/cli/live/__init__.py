"""Live display of a run: a redrawn table of hosts in a terminal, one line per event elsewhere."""
