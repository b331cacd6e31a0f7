"""Plans in files: saved, signed, and taken up again."""
