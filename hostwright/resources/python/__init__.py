"""States of Python interpreters and virtual environments."""
