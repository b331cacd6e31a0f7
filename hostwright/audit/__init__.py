"""Audits of hosts: their state, differences from their stacks, known failures, and their history."""
