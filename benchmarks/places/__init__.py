"""Hosts of the benchmark: the lab's, hosts behind a long delay, and a thousand that replay recorded answers."""
