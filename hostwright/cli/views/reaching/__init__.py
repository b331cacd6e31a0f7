"""Views of host keys, and of the output of a command."""
