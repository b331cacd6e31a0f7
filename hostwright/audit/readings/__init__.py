"""The values of a host (readings): the shell program that prints them, and the parser of its output."""
