"""The benchmark's samples, values computed from them, and verdicts on goals."""
