"""Executes a run on the workers of a Dask cluster, on other machines.

On the operator's machine, ``cluster`` is the executor of the run's loop. For each host, it sends a ``Task`` (plain data
without secrets) and receives the events of the host. On a worker, a ``WorkerSession`` runs tasks: it requests
permission to begin, works as the operator's machine would, sends reports, and keeps its own record.
"""
