"""Declarations of workspaces in an inventory: their form, and conflicts between them."""
