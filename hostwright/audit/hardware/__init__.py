"""GPUs: the state that their driver reports, and their events in the kernel log."""
