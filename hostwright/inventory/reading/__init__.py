"""Readers of inventory files and programs, each into a draft of the inventory."""
