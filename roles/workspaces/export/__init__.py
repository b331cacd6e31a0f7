"""The same workspace for other systems: Compose, Slurm, Kubernetes."""
