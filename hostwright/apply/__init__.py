"""Applies plans to many hosts: jobs, file delivery, reboots, drains, locks, rollouts, journal."""
