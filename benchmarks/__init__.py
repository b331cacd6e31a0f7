"""Benchmark that compares Hostwright with other tools on the virtual hosts of a lab on this machine."""
