"""The output formats for the results of proofs."""
