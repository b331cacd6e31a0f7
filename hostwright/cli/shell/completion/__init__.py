"""What the shell completes: words, their values, and the names of hosts that it keeps."""
