"""Parser of nvidia-smi's report on a host's GPUs, for all driver generations."""
