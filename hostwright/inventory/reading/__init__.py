"""Readers for inventory files and inventory programs. Each adds what it reads to a draft of the inventory."""
