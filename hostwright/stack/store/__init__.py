"""Stores stacks' files: fetches them from vendors and archives to this machine, and names their paths on hosts."""
