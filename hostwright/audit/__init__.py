"""Audits of hosts: their state, differences from their stacks, known failures, and how long these have lasted."""
