"""``docs/performance.md``: tables, verdicts and charts, generated from the stored figures."""
