"""Xids, what NVIDIA's driver reports in the kernel log when something goes wrong on a GPU; and that log."""
