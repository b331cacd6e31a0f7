"""The stack's files: on this machine, from their vendors, and where they lie on hosts."""
