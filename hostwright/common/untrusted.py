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
from typing import Any, Protocol

import re2

from hostwright.common.errors import HostError, HostwrightError, NotAnswered
from hostwright.common.places import PRIVATE_FILE, make_folder, plain_name, state_root, write_whole
from hostwright.common.text import short

DIGITS = 18  #: of a whole number: what SQLite and every reader of our reports holds
FOLDER = "unforeseen"  #: below the state directory: a file for each host, the last one counts
_DETAIL_CHARACTERS = 64 * 1024  #: of a traceback; its message may be a whole answer

#: of one pattern's compiled form and its cache of states: what a text may make all patterns together take is bounded
MAX_PATTERN_BYTES = 1024 * 1024

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
    except NotAnswered as error:
        raise HostError(host, str(error)) from error
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
        make_folder(folder)
        path = folder / f"{plain_name(host)}.txt"
        text = "".join(traceback.format_exception(error))[-_DETAIL_CHARACTERS:]
        write_whole(path, text.encode("utf-8", "backslashreplace"), PRIVATE_FILE)
    except (OSError, HostwrightError, MemoryError):
        return None
    return path


class Match(Protocol):
    """Where a pattern was found: ``match[0]`` is the text, ``match[1]`` the first group or ``None``."""

    def __getitem__(self, group: int | str) -> str: ...

    def start(self) -> int:
        """The place of its first character."""

    def end(self) -> int:
        """The place after its last character."""

    def groupdict(self) -> dict[str, str | None]:
        """The text of each named group, ``None`` for one that matches nothing."""


class Pattern:
    """A regular expression for a text that others wrote. The engine (RE2) takes time in proportion to the text's
    length, whatever stands there: it knows no look-around and no back-references, and counts to 1,000 at most.

    ``\\d``, ``\\s``, ``\\w`` and ``\\b`` mean ASCII; flags stand at the beginning, as in ``(?im)``.

    >>> Pattern("(?i)error [0-9]+").search("an ERROR 12")[0]
    'ERROR 12'
    """

    __slots__ = ("_regexp", "pattern")

    def __init__(self, pattern: str) -> None:
        options = re2.Options()
        options.max_mem = MAX_PATTERN_BYTES
        options.log_errors = False
        self.pattern = pattern
        self._regexp = re2.compile(pattern, options)

    def search(self, text: str) -> Match | None:
        """The first place in the text."""
        match: Match | None = self._regexp.search(_encodable(text))
        return match

    def lines(self, text: str, unless: Pattern | None = None) -> str | None:
        """The whole lines of the first match; where ``unless`` is found in them, of the next one below them.

        >>> Pattern("full").lines("disk full\\n/dev/shm is full", Pattern("disk"))
        '/dev/shm is full'
        """
        raw, start = text.encode("utf-8", "replace"), 0
        while start <= len(raw) and (match := self._regexp.search(raw, start)):
            begin, end = raw.rfind(b"\n", 0, match.start()) + 1, raw.find(b"\n", match.end())
            found = raw[begin : end if end >= 0 else len(raw)]
            if unless is None or not unless._regexp.search(found):
                return found.decode("utf-8", "replace")
            start = begin + len(found) + 1
        return None

    def match(self, text: str) -> Match | None:
        """The place at the beginning of the text."""
        match: Match | None = self._regexp.match(_encodable(text))
        return match

    def fullmatch(self, text: str) -> Match | None:
        """The whole text, where it matches."""
        match: Match | None = self._regexp.fullmatch(_encodable(text))
        return match

    def finditer(self, text: str) -> Iterator[Match]:
        """All places, one after another."""
        matches: Iterator[Match] = self._regexp.finditer(_encodable(text))
        return matches

    def sub(self, replacement: str, text: str) -> str:
        """The text with this literal text in place of each match."""
        replaced: str = self._regexp.sub(lambda _: replacement, _encodable(text))
        return replaced


def _encodable(text: str) -> str:
    """The text with ``?`` for each half of a surrogate pair that stands alone, which has no encoding."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def whole(text: str) -> int | None:
    """A whole number in a host's text; ``None`` for any other text, and for one of more than ``DIGITS`` digits.

    >>> [whole(text) for text in ("470", "-1", "²", "٣", "9" * 5000, "")]
    [470, None, None, None, None, None]
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS else None


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
