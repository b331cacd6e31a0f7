"""Hosts of the benchmark: hosts of the lab, also with a delay, and a thousand hosts that replay recorded answers."""
