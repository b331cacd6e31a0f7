"""Xids (NVIDIA's error reports about a GPU in the kernel log), and the parser of that log."""
