"""Audits of a fleet: the state of each host, differences from its stack, known failures, and how long each lasts."""
