"""Basics that all packages share: errors, secrets, text, durations, YAML, quoting for shells."""
