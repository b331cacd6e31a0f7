"""Installed software on hosts by layer, whoever installed it; groups of equal hosts; draft stacks."""
