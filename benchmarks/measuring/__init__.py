"""What one command costs: its wall, and the processor time, memory and traffic of its whole process tree."""
