"""Planning: probes a host for facts, computes the host's desired states from its roles, and plans the changes."""
