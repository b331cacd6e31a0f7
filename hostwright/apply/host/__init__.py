"""Applies a plan to one host."""
