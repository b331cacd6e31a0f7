"""Which key a host must show: keys as values, the sources of the right key, and recording it by intent."""
