"""Logging in: who is let in with what, from files that are read once, and what the login shell prints."""
