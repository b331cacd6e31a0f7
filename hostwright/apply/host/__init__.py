"""Applies a plan to one host: probes, planning, locks, jobs, reboots and records."""
