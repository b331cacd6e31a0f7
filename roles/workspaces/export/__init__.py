"""Export of a workspace into formats of other systems: Compose, Slurm, Kubernetes."""
