"""What the host's cards say of themselves: nvidia-smi's report and the kernel's log."""
