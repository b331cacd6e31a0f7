"""Probes that run on every host, independent of its roles: jobs, locks, users, drain state, release record."""
