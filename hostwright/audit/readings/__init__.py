"""The values of a host (readings): the shell program that prints the values, and the parser of its output."""
