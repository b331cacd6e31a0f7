"""Installation of a new operating system on a host: seeds, their server, and the new host key."""
