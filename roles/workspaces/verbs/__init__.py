"""The verbs of workspaces: the file that they write, and what they ask hosts."""
