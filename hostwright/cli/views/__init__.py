"""Prints the results of verbs, as text or JSON."""
