"""nvidia-smi's report on a host's cards, for all driver generations."""
