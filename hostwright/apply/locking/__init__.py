"""Acquires, keeps and releases the locks of hosts."""
