"""Where a host's files come from: this machine, which serves them by HTTP, and hosts of the run that have them."""
