"""Logging in: who is let in with what, and what the login shell prints before any command."""
