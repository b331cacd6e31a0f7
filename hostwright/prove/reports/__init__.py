"""Proofs as people and programs read them."""
