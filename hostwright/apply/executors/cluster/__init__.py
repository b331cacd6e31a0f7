"""The workers of a Dask cluster, on other machines, work on the hosts of a run.

On the operator's machine, ``cluster`` is the executor of the run's loop. For each host it sends a ``Task``, plain data
without a secret, and receives what happens there, event by event. On a worker, a ``WorkerSession`` runs tasks: it asks
before it begins, works as the operator's machine would, reports, and keeps a record of its own.
"""
