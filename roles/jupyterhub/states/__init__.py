"""States of JupyterHub: GPUs, network, image and users' Jupyter servers."""
