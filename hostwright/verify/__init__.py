"""Runs the checks of each layer with testinfra over Hostwright's SSH connections."""
