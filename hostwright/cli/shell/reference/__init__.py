"""The reference pages of verbs and variables; ``python -m hostwright.cli.shell.reference`` writes them."""
