"""The stack's files: on this machine, from their vendors, and on hosts."""
