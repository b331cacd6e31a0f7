"""Readers of files that people write: YAML with line numbers, error messages, suggestions for misspelt names."""
