"""Generators of the reference pages for verbs and variables. ``python -m hostwright.cli.shell.reference`` writes the
pages."""
