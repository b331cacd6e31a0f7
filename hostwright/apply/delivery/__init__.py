"""Files of a stack onto a host: sent by us over the SSH connection, or fetched by the host from the vendor."""
