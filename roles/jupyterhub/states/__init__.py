"""What JupyterHub alone needs on a host: its GPUs, its network, its image, and people's servers."""
