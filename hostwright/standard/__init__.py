"""The standard roles, templates, stacks and checks: links to the folders at the top of the repository."""
