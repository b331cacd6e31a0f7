"""What makes this folder a site; nobody runs invoke in it."""
