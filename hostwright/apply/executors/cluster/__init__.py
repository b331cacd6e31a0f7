"""A run's hosts worked on by the workers of a Dask cluster, on other machines.

On the operator's machine the loop of the run stays what it is; ``cluster`` is its executor. For each host it sends a
``Task``, plain data without a secret, and hears of what happens there, event by event. On a worker, a ``WorkerSession``
works on them: it asks before it begins, works as this machine would, tells, and keeps a record of its own.
"""
