"""Hosts of the benchmark: virtual hosts of a lab, and a thousand loopback hosts that replay recorded answers."""
