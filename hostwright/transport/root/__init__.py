"""Root on a host: programs over standard input, and the root shell."""
