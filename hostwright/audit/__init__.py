"""Audits of a fleet: what each host has and should have, its known problems, and how long each has lasted."""
