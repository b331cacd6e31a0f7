"""HTTPS for seeds: this machine's certificate authority, and its delivery to installers by their boot loaders."""
