"""Probes that run on every host, whatever its roles: facts, jobs, locks, running work, drain state, release record."""
