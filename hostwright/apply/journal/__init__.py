"""The append-only record of every run: the facts, the plans, what was done, by whom, and how it ended.

Place: ``$HOSTWRIGHT_STATE``, else ``$XDG_STATE_HOME/hostwright``, else ``~/.local/state/hostwright``; directories are
0700, files 0600. A run is a directory below ``runs/``, created exclusively: no two processes share one.

    runs/RUN/journal.jsonl             one JSON object per line, ASCII only, each written by one append
    runs/RUN/facts/HOST.before.json.gz the answers of the first probe of a host
    runs/RUN/facts/HOST.after.json.gz  those of the latest probe after it

Every record has ``kind``, ``t`` (seconds since the run began) and ``at`` (UTC, ISO 8601); a record about a host has
``host``. The first is ``run began`` with ``schema`` (1), ``run``, ``verb``, ``hosts``, ``inventory``, ``place`` (a hash
of the inventory's path, by which its runs are found again), ``options`` as given, ``masked`` (the options in which a
secret was masked), ``operator``, ``commit``, ``inventory_commit``, ``version``, ``argv``, ``pid`` and ``began``. Then
come the events, each named after its class in ``hostwright.apply.events``, with its fields: ``observed`` (the plan,
and the facts' file), ``role started``, ``attached``, ``delivering`` (once, when done, with the bytes that came from
each source and its seconds), ``role finished`` (every step with status, seconds, of which it waited, tries, output),
``retrying``, ``rebooted``, ``note``, ``silent``, ``host ended``. The last is
``run ended`` with ``status``, ``how`` (ended, interrupted or crashed), ``sentence``, ``results`` (hosts counted by
result) and ``bytes``. A schema may gain fields and kinds; readers ignore what they do not know.

While a run is in progress, its process holds a lock (``flock``) on its journal: a run with neither a last record nor a
lock was cut off. A truncated last line is not read; a damaged line is skipped and counted.

None of these files holds a secret (``hostwright.apply.journal.redaction``). A journal that cannot be written does not
stop the run.
"""
