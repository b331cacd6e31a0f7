"""Resources (desired states of a host) that only the driver role uses."""
