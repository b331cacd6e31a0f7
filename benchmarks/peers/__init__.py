"""Peers: other tools that do the same work as Hostwright, as their users would write it."""
