"""Compare the figures of peers, hosts whose figures should be equal: find outliers, and select proofs to repeat."""
