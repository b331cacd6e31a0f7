"""Judge a host by its facts. Pure."""
