"""A new operating system for a host: seeds, their server, and the new host key."""
