"""Implementations of the tasks for workspaces: inventory changes and queries."""
