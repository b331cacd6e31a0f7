"""Roles: their definition and discovery, the roles of a host, and their order."""
