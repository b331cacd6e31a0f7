"""The sources of a host's files: this machine, which serves them by HTTP, and hosts of the run that have them."""
