"""Resources that several roles use."""
