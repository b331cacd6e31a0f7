"""The stacks of a roster: their files on this machine, and the list of all stacks."""
