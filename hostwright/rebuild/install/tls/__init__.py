"""Trust of installers: this machine's certificate authority, and its delivery by boot loaders."""
