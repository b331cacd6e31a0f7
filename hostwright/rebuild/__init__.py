"""Rebuild of broken hosts: diagnosis, the least invasive repair that works, and records of each rebuild's duration."""
