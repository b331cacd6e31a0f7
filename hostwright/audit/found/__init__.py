"""Software found on hosts, whoever installed it; groups of hosts with equal software; draft stacks."""
