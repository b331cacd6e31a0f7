"""Probes for every host, whatever its roles: jobs, locks, users, drain state, release record."""
