"""Failures of the cards themselves, and of what joins them to the host and to each other."""
