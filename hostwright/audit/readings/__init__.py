"""The values of a host: the program that prints them, and what is read out of its lines."""
