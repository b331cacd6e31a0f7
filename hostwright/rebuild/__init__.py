"""Rebuild of broken hosts: diagnosis, the least invasive repair that works, and durations of its phases."""
