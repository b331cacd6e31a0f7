"""Runs one command on many hosts: as a login user without root access, or as root with ``--root``."""
