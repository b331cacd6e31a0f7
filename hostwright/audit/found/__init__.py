"""Installed software on hosts by layer, including software installed by hand; groups of equal hosts; draft stacks."""
