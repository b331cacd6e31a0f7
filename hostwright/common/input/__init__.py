"""Files that people write: YAML with line numbers, mistakes as sentences, suggestions for misspelt names."""
