"""What came of reaching hosts: their keys, the output of a command."""
