"""HTTPS for seeds (files for installers): this machine's certificate authority, and its delivery by boot loaders."""
