"""Failures of GPU cards, and of their connections to the host and to each other."""
