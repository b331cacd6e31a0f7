"""Hosts of the benchmark: hosts of the lab, and a thousand hosts that replay recorded answers."""
