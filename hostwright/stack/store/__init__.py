"""The stack's files: on this machine, from their vendors, and their places on hosts."""
