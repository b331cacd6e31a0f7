"""The view of a run in progress: a redrawn table of hosts in a terminal, one line per event elsewhere."""
