"""Benchmark of Hostwright and other tools on hosts of this machine's lab."""
