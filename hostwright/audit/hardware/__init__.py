"""GPUs: the state that their drivers report, and their events in the kernel log."""
