"""Proofs: measurements that show whether hosts perform as expected. Programs of roles run on a host, and the figures
that they measure are judged.

Each figure is judged on its own, against the host's baseline, and against the figures of other hosts.
"""
