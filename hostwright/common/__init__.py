"""Basics for all packages: errors, secrets, text, durations, YAML, quoting for shells."""
