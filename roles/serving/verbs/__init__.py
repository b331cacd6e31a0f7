"""The verbs ``serve.…``: what they write and what they ask hosts."""
