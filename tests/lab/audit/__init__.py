"""The audit on real hosts: what was planted is found, nothing is invented, each cure works."""
