"""What disturbs running work: draining a host, rebooting it, and who is on it."""
