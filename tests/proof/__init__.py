"""Proofs on lab hosts with real TensorFlow: that they pass on good hosts and find what was planted; `make proof`."""
