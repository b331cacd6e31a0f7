"""Stores stacks' files: fetches them from vendors and archives to this machine, and defines their paths on hosts."""
