"""Safe handling of output from hosts: unexpected errors, regular expressions, JSON.

``guarded`` converts an unexpected error in the work on a host to an error of that host, so that work on other hosts
continues.
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

#: maximum number of digits of a whole number that SQLite can store
DIGITS = 18
#: name of the folder with the latest internal error of each host
FOLDER = "unforeseen"
#: maximum number of characters of a stored traceback. A traceback may contain the whole output of a host.
_DETAIL_CHARACTERS = 64 * 1024

#: memory limit in bytes of each compiled pattern, including the cache of the pattern
MAX_PATTERN_BYTES = 1024 * 1024

_log = logging.getLogger("hostwright")


class Unforeseen(HostError):
    """An internal error during the work on a host: a bug in Hostwright, or unexpected output from the host.

    ``__cause__`` is the original error.
    """


@contextmanager
def guarded(host: str) -> Iterator[None]:
    """Convert an unexpected error in the block to ``Unforeseen``, an error of ``host``.

    The traceback is stored in the state directory, and also printed with ``--debug``.

    >>> with guarded("gpu03"):
    ...     int("9" * 5000)
    Traceback (most recent call last):
    hostwright.common.untrusted.Unforeseen: gpu03: internal error: ValueError...
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
            f"internal error: {message} (a bug in Hostwright, or unexpected output from the host{details})",
        ) from error


def _keep(host: str, error: Exception) -> Path | None:
    """Store the traceback of ``error``, and return the path of the file; ``None`` if it cannot be written."""
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
    """A match of a ``Pattern``. ``match[0]`` is the matched text; ``match[1]`` is the text of group 1, or ``None``."""

    def __getitem__(self, group: int | str) -> str: ...

    def start(self) -> int:
        """Return the index of the first character of the match."""

    def end(self) -> int:
        """Return the index after the last character of the match."""

    def groupdict(self) -> dict[str, str | None]:
        """Return name → text for all named groups. The text of a group without a match is ``None``."""


class Pattern:
    """A regular expression for untrusted text. The engine (RE2) needs time linear in the length of the text.

    RE2 has no look-around and no back-references, and repeats a part at most 1,000 times. ``\\d``, ``\\s``, ``\\w`` and
    ``\\b`` match only ASCII. Flags are at the beginning of the pattern, as in ``(?im)``.

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
        """Return the first match in ``text``; ``None`` if the pattern does not match."""
        match: Match | None = self._regexp.search(_encodable(text))
        return match

    def lines(self, text: str, unless: Pattern | None = None) -> str | None:
        """Return the whole lines of the first match in ``text``.

        If ``unless`` matches in these lines, the next match is used.

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
        """Return the match at the beginning of ``text``; ``None`` without a match there."""
        match: Match | None = self._regexp.match(_encodable(text))
        return match

    def fullmatch(self, text: str) -> Match | None:
        """Return the match of the whole ``text``; ``None`` if the pattern does not match all of it."""
        match: Match | None = self._regexp.fullmatch(_encodable(text))
        return match

    def finditer(self, text: str) -> Iterator[Match]:
        """Yield all matches in ``text``."""
        matches: Iterator[Match] = self._regexp.finditer(_encodable(text))
        return matches

    def sub(self, replacement: str, text: str) -> str:
        """Return ``text`` with each match replaced by ``replacement``, in which no character has a special meaning."""
        replaced: str = self._regexp.sub(lambda _: replacement, _encodable(text))
        return replaced


def _encodable(text: str) -> str:
    """Replace each lone surrogate in ``text`` with ``?``, because surrogates cannot be encoded."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def whole(text: str) -> int | None:
    """Parse ``text`` as a whole number of at most ``DIGITS`` digits; ``None`` for any other text.

    >>> [whole(text) for text in ("470", "-1", "²", "٣", "9" * 5000, "")]
    [470, None, None, None, None, None]
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS else None


def json_object(text: str) -> dict[str, Any] | None:
    """Parse ``text``, the output of a host, as a JSON object; ``None`` for any other text.

    A text that JSON parsers interpret differently is rejected: duplicate keys, ``NaN`` and infinity, lone surrogates,
    long numbers, and very deep nesting.

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
        raise ValueError("the JSON has a duplicate key")
    return values


def _int(digits: str) -> int:
    if len(digits) > DIGITS:
        raise ValueError("the JSON has a number with too many digits")
    return int(digits)
