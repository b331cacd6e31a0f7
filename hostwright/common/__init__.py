"""Shared basics: errors, secrets, text, durations, YAML, shell quoting."""
