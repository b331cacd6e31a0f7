"""Roles: defines, discovers and orders roles, and determines the roles of each host."""
