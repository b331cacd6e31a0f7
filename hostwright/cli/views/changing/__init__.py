"""Plans, and what came of runs that changed hosts."""
