"""Views of plans, and of the results of runs that changed hosts."""
