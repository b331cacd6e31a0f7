"""Where the runs are kept on this machine, and under which names."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from hostwright.common.errors import InputError

STATE_VARIABLE = "HOSTWRIGHT_STATE"
JOURNAL, FACTS = "journal.jsonl", "facts"
BEFORE, AFTER = "before", "after"  #: the facts of the first probe of a host in a run, and of the latest one
PRIVATE_DIR, PRIVATE_FILE = 0o700, 0o600

_PLAIN = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,99}")
_MAX_SLUG = 60  #: characters of a name that is not plain, kept for the eye; the hash beside them tells it from others


def state_root() -> Path:
    """The directory that holds all that this machine remembers; it need not exist yet."""
    named = os.environ.get(STATE_VARIABLE, "")
    if named:
        return Path(named).absolute()
    base = os.environ.get("XDG_STATE_HOME", "")
    if Path(base).is_absolute():  # the XDG specification: a relative one is to be ignored
        return Path(base) / "hostwright"
    try:
        return Path.home() / ".local" / "state" / "hostwright"
    except RuntimeError as error:
        raise InputError(
            "there is no home directory: set this to a directory for the records of runs", STATE_VARIABLE
        ) from error


def runs_dir(root: Path) -> Path:
    """The directory of all runs."""
    return root / "runs"


def place_of(inventory: str | Path) -> str:
    """A hash of where an inventory lies: equal for every way of writing the same path."""
    return hashlib.sha256(os.fsencode(os.path.realpath(inventory))).hexdigest()[:32]


def facts_file(host: str, when: str) -> str:
    """The name, within the run's directory, of the file of a host's facts. A host's name is text of the inventory."""
    return f"{FACTS}/{_safe(host)}.{when}.json.gz"


def _safe(name: str) -> str:
    """A file name for any text, different for different texts even where letters' case does not count."""
    if _PLAIN.fullmatch(name):
        return name
    slug = re.sub(r"[^a-z0-9_-]+", "-", name.lower())[:_MAX_SLUG].strip("-")
    return f"{slug}+{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
