"""What the host's cards say of themselves: their driver's report and the kernel's log."""
