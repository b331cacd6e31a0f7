"""Readers for inventory files and inventory programs. Each reader adds hosts and variables to a ``Draft``."""
