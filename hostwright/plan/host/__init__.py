"""Probes that run on every host, whatever its roles, and parsers of their answers.

The probes read the host's facts, jobs, locks, running work, drain record and release record.
"""
