"""The changes of a role as one numbered sh program that runs as a detached job on the host."""
