"""Samples, values computed from them, and verdicts on goals. Pure."""
