"""Proofs of hosts by measurement. Programs of roles run on a host, and the figures that they measure are judged.

Each figure is judged alone, against the host's baseline, and against other hosts.
"""
