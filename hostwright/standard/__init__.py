"""The standard roles, templates, stacks, checks and schemas: links to folders of the repository."""
