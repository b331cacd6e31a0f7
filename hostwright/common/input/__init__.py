"""Readers for files that users write: YAML with line numbers, checks of values, suggestions for misspelt names."""
