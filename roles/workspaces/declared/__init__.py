"""What an inventory declares of workspaces, its form, and what of it cannot be promised twice."""
