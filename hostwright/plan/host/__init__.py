"""Probes that run on every host, whatever roles it has: for facts, jobs, locks, running work, drain state and release
record.
"""
