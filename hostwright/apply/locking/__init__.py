"""Taking, keeping and releasing the locks of hosts."""
