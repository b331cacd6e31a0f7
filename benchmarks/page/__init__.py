"""``docs/performance.md``: tables, verdicts and plots, all made from the recorded figures."""
