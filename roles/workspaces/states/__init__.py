"""The states of workspaces on a host."""
