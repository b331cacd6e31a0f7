"""Saves plans to files, with an optional signature, and reads them."""
