"""Who carries out the work on a run's hosts: executors in the sense of ``concurrent.futures``."""
