"""Implementation of the tasks ``serve.…``: inventory changes and queries for models."""
