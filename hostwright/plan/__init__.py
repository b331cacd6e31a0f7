"""Planning: probes and facts of hosts, roles and their desired states, plans and release records."""
