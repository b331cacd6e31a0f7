"""Samples of the benchmark, values computed from the samples, and verdicts on goals."""
