"""Command line parsing, messages about mistakes, help, completion, and unexpected errors."""
