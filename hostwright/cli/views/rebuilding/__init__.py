"""Rebuilds in a terminal: while they go on, and how long they took."""
