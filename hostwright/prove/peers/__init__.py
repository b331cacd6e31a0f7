"""Compares the figures of hosts that should be equal (peers): finds outliers, and selects proofs to repeat."""
