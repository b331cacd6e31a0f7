"""Rebuild of one host."""
