"""The stacks of a roster: the files that they need on this machine, and all that can be found."""
