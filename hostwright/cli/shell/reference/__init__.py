"""Generators of the reference pages for verbs and variables, run by ``python -m hostwright.cli.shell.reference``."""
