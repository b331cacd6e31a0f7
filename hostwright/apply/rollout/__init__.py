"""Runs on many hosts in parallel: batch size, order, failure limits."""
