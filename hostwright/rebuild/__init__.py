"""Rebuild of broken hosts: their diagnosis, the least invasive repair that works, and records of its duration."""
