"""Cost of one command: its wall time, and the processor time, memory and traffic of its process tree."""
