"""Cards as values: what their driver reports about them, and the events that they wrote to the kernel's log."""
