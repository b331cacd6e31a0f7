"""Defines, finds and orders roles, and determines the roles of each host."""
