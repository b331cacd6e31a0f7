"""Resources that only the driver role uses."""
