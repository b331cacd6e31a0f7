"""Measured values, what is computed from them, and whether a goal is reached. Pure."""
