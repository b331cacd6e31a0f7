"""Compute the status, deviations and findings of a host from its facts (answers to probes).

All functions are pure.
"""
