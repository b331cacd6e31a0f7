"""Shell completion: words, their values, and cached names of hosts."""
