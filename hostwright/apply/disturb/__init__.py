"""Disruption of hosts: draining, rebooting, and the users whose work would be disturbed."""
