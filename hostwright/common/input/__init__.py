"""Readers for files that users write: YAML with line numbers, error messages, suggestions for misspelt names."""
