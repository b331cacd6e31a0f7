"""Which key a host must show: keys as values, where the right one is learned from, and writing it down by intent."""
