"""The same work with other tools, as their users write it, and the stack's files for these tools."""
