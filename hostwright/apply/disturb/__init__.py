"""Draining and rebooting hosts, and the users of a host."""
