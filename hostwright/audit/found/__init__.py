"""All software found on hosts, groups of hosts with equal software, and draft stacks."""
