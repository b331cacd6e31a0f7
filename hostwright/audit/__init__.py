"""Audits of hosts: the state of a host, its differences from its stack, known failures, and its history."""
