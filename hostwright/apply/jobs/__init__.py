"""Changes as one numbered sh program, run as a detached job on the host."""
