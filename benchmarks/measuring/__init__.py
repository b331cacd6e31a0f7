"""Measurement of a command: wall time, and processor time, memory and traffic of its process tree."""
