"""The values of a host: the program that prints them, and the readings parsed from its output."""
