"""Readers for inventory files and inventory programs. Each adds hosts and variables to a ``Draft``."""
