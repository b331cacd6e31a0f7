"""Command line: parsing, messages about mistakes, help, completion, and messages about internal errors."""
