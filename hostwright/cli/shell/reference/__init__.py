"""The pages of verbs and of variables, from the code: ``python -m hostwright.cli.shell.reference`` writes them."""
