"""What a host says may be anything: the one guard around who reads it, and JSON that all readers take alike.

Code that reads an answer may fail in ways that nobody thought of. ``guarded`` makes the error of that host of it: no
reason to leave the other hosts in the middle of their work, and none to lose what a developer needs to mend it.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hostwright.common.errors import HostError, HostwrightError
from hostwright.common.places import PRIVATE_DIR, plain_name, state_root, write_whole
from hostwright.common.text import short

DIGITS = 18  #: of a whole number: what SQLite and every reader of our reports holds
FOLDER = "unforeseen"  #: below the state directory: a file for each host, the last one counts
_DETAIL_CHARACTERS = 64 * 1024  #: of a traceback; its message may be a whole answer

_log = logging.getLogger("hostwright")


class Unforeseen(HostError):
    """The work on a host ended in an error that nobody foresaw: a fault of Hostwright, or something that the host
    answered. ``__cause__`` is that error."""


@contextmanager
def guarded(host: str) -> Iterator[None]:
    """Make ``Unforeseen`` of any error of the block that Hostwright does not raise on purpose.

    The traceback is kept in the state directory, and printed with ``--debug``.

    >>> with guarded("gpu03"):
    ...     int("9" * 5000)
    Traceback (most recent call last):
    hostwright.common.untrusted.Unforeseen: gpu03: the work on it ended in an unforeseen error...
    """
    try:
        yield
    except HostwrightError:
        raise
    except Exception as error:
        _log.debug("unforeseen error in the work on %s", host, exc_info=error)
        kept = _keep(host, error)
        details = f"; details in {kept}" if kept else ""
        message = f"{type(error).__name__}: {short(str(error))}".rstrip(": ")
        raise Unforeseen(
            host,
            f"the work on it ended in an unforeseen error: {message} (a fault of Hostwright, or of what the host "
            f"answered{details})",
        ) from error


def _keep(host: str, error: Exception) -> Path | None:
    """The file with the traceback; ``None`` where it cannot be written."""
    try:
        folder = state_root() / FOLDER
        folder.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
        path = folder / f"{plain_name(host)}.txt"
        text = "".join(traceback.format_exception(error))[-_DETAIL_CHARACTERS:]
        write_whole(path, text.encode("utf-8", "backslashreplace"))
    except (OSError, HostwrightError, MemoryError):
        return None
    return path


def json_object(text: str) -> dict[str, Any] | None:
    """The JSON object in a host's text; ``None`` for any other text.

    What readers of JSON understand differently is no JSON here: a key that stands twice in an object, ``NaN`` and
    infinity, half of a surrogate pair, a whole number of more than ``DIGITS`` digits, and what is nested too deeply.

    >>> json_object('{"schema": 2}')
    {'schema': 2}
    >>> [json_object(text) for text in ('{"a": 1, "a": 2}', '{"a": 1e999}', r'{"a": "\\ud800"}', '{"a": ' * 9999)]
    [None, None, None, None]
    """
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_int=_int)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key stands twice")
    return values


def _int(digits: str) -> int:
    if len(digits) > DIGITS:
        raise ValueError("a number is too long")
    return int(digits)
