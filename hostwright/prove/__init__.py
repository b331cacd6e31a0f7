"""Proofs of hosts by measurement: roles' programs run on hosts, and their figures are judged.

A figure is judged alone, against the host's baseline, and against other hosts.
"""
