"""Planning: probes a host for facts, computes its desired states from its roles, and plans the changes."""
