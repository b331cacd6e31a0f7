"""Runs work on many hosts in parallel, within limits: batch size, canaries, maximum failures."""
