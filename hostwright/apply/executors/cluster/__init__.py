"""Executes a run on the workers of a Dask cluster, on other machines.

On the operator's machine, ``cluster`` is the executor. For each host, the executor sends a ``Task`` (plain data without
secrets) and receives events. On a worker, a ``WorkerSession`` runs the tasks, reports events, and records these
reports.
"""
