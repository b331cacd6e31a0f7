"""The append-only journal of every run: facts, plans, steps, operator and outcome.

Place: ``$HOSTWRIGHT_STATE``, else ``$XDG_STATE_HOME/hostwright``, else ``~/.local/state/hostwright``; directories are
0700, files 0600. A run is a directory below ``runs/``, created exclusively: no two processes share one.

    runs/RUN/journal.jsonl             one JSON object per line, ASCII only, each written by one append
    runs/RUN/facts/HOST.before.json.gz the answers of the first probe of a host
    runs/RUN/facts/HOST.after.json.gz  the answers of the latest later probe

Every record has ``kind``, ``t`` (seconds since the run began) and ``at`` (UTC, ISO 8601); a record about a host has
``host``. The first record is ``run began`` with ``schema`` (1), ``run``, ``verb``, ``hosts``, ``inventory``, ``place``
(a hash of the inventory's path, by which its runs are found), ``options`` as given, ``masked`` (the options in which a
secret was masked), ``operator``, ``commit``, ``inventory_commit``, ``version``, ``argv``, ``pid`` and ``began``.

The events follow, each named after its class in ``hostwright.apply.events``, with its fields: ``observed`` (the plan,
and the file of the facts), ``role started``, ``attached``, ``delivering`` (once, at the end, with the bytes from each
source and the seconds), ``role finished`` (every step with status, seconds, seconds waited, tries and output),
``retrying``, ``rebooted``, ``note``, ``silent``, ``host ended``.

The last record is ``run ended`` with ``status``, ``how`` (ended, interrupted or crashed), ``sentence``, ``results``
(hosts counted by result) and ``bytes``. A schema may gain fields and kinds; readers ignore unknown ones.

While a run is in progress, its process holds a lock (``flock``) on its journal. A run with neither a last record nor a
lock was cut off. Readers ignore a truncated last line; they skip and count damaged lines.

These files contain no secrets (``hostwright.apply.journal.redaction``). A write error on the journal does not stop the
run.
"""
