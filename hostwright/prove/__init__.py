"""Proofs: measurements that show whether hosts perform as expected. Programs of roles run on a host and measure
figures, and Hostwright judges these figures.

Each figure is judged on its own, against the host's baseline, and against the figures of other hosts.
"""
