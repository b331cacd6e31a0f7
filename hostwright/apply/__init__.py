"""Carrying out plans on many hosts: jobs, delivery, reboot, drain, locks, rollout, journal."""
