"""Workspaces that fail, and whoever makes them being killed: on one host with Docker and a small image."""
