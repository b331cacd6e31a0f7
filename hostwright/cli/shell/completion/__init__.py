"""Shell completion: verbs, options, values of options, and names of hosts from a cache."""
