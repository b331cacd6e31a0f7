"""Roles: what one is, which ones there are, which of them a host has, in which order."""
