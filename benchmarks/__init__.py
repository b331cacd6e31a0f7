"""Benchmark of Hostwright and other tools on this machine's own lab, measured alternately in one run."""
