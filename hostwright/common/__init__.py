"""Modules that all packages use: errors, secrets, text formatting, durations, YAML, quoting for shells."""
