"""Installation of a new operating system on a host: seeds for installers, servers of seeds, and new host keys."""
