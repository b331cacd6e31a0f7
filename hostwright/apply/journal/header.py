"""The first record of a run: its operator, command and hosts, and the commit of the site."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hostwright import __version__
from hostwright.common.operator import operator

GIT_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True)
class RunHeader:
    """The first record of a run. ``began`` is UTC in ISO 8601; ``operator`` is user@machine; commits may be empty.

    ``options`` are the user's options as JSON values, never a password. ``place`` (a hash of the inventory's path) and
    ``masked`` (the options in which a secret was masked) are set when the header is written.
    """

    run: str
    verb: str
    hosts: tuple[str, ...]
    inventory: str
    options: Mapping[str, Any] = field(default_factory=dict)
    operator: str = ""
    commit: str = ""
    inventory_commit: str = ""
    version: str = __version__
    argv: tuple[str, ...] = ()
    pid: int = 0
    began: str = ""
    place: str = ""
    masked: tuple[str, ...] = ()

    @classmethod
    def now(
        cls, verb: str, hosts: Sequence[str], inventory: Path, options: Mapping[str, Any], *, site: Path
    ) -> RunHeader:
        """Return the header of a run that this process begins now. ``site`` is the directory of the site."""
        return cls(
            run=new_run_id(),
            verb=verb,
            hosts=tuple(hosts),
            inventory=str(inventory.resolve()),
            options=options,
            operator=operator(),
            commit=commit_of(site),
            inventory_commit=commit_of(inventory),
            argv=tuple(sys.argv),
            pid=os.getpid(),
            began=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )


def new_run_id() -> str:
    """Return a new run ID. IDs sort by time (UTC), and may be part of unit names and file names."""
    return time.strftime("%Y%m%dt%H%M%S", time.gmtime()) + "-" + secrets.token_hex(2)


def commit_of(path: str | Path) -> str:
    """Return the git commit of the directory ``path``, or of a file's directory.

    ``+dirty`` is added if a file below the directory differs. The commit is empty without git, without a repository, or
    if git takes longer than ``GIT_TIMEOUT_S``.
    """
    place = Path(path)
    command = ["git", "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch", "--", "."]
    try:
        status = subprocess.run(
            command,
            cwd=place if place.is_dir() else place.parent,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_TIMEOUT_S,
            check=True,
        ).stdout.decode("utf-8", errors="replace")
    except (OSError, subprocess.SubprocessError):
        return ""
    lines = status.splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), "")
    dirty = any(not line.startswith("#") for line in lines)
    return commit + ("+dirty" if dirty else "") if len(commit) >= 40 else ""
