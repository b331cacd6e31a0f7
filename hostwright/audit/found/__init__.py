"""Software that was found on hosts: comparison of hosts with equal software, and stacks written from that software."""
