"""The output formats of proofs."""
