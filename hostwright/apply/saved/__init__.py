"""Saved and signed plans."""
