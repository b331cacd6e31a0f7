"""Acquires, keeps and releases the locks on hosts."""
