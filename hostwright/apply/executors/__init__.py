"""The executors (as in ``concurrent.futures``) that work on the hosts of a run."""
