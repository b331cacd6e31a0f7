"""The values of a host: the shell program that prints them, and the readings parsed from its output."""
