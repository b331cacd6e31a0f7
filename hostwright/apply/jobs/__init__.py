"""The changes of a role as one sh program with numbered steps, which runs as a detached job on the host."""
