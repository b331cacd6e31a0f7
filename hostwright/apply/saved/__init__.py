"""Plans that are saved to a file and may be signed."""
