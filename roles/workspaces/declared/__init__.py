"""Declarations of workspaces in an inventory, and checks for conflicts between them."""
