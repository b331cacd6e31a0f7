"""States of workspaces on a host."""
