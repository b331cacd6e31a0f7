"""Peers: other tools that do the same work as Hostwright, written as their users would, with the stack's files."""
