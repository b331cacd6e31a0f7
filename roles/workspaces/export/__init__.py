"""Workspaces in the formats of other systems: Compose, Slurm, Kubernetes."""
