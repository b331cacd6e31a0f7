"""Failures of the cards themselves, and of their connections to the host and to each other."""
