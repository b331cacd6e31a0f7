"""Many hosts side by side: how many at once, which first, how many may fail."""
