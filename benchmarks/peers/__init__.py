"""Peers: other tools that do the same work as Hostwright, with the files that their users would write."""
