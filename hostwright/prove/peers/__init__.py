"""Compare the figures of hosts that should be equal (peers): find outliers, and select proofs to repeat."""
