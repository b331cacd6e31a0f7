"""Hosts of the benchmark: virtual hosts of a lab, and loopback hosts that replay recorded outputs."""
