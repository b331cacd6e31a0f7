"""Benchmark of Hostwright and other tools on hosts of this machine's lab. In a run, the tools are measured in turn."""
