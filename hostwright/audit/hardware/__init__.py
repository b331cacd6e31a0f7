"""GPU cards as values: the state that their driver reports, and the events in the kernel log."""
