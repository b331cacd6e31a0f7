"""Declarations of workspaces in an inventory, and conflicts between them."""
