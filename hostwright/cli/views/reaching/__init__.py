"""Prints results for host keys, and the output of commands on hosts."""
