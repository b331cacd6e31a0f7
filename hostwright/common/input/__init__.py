"""Files that people write: YAML with its places, mistakes as sentences, what was perhaps meant."""
