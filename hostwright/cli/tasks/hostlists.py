"""Reads hosts from files, as pdsh does: ``--hosts ^FILE``, or ``^-`` for standard input."""

from __future__ import annotations

import sys

from hostwright.common.errors import InputError
from hostwright.common.places import unread
from hostwright.common.userpaths import STDOUT, expanded

MARK = "^"
LARGEST = 4 * 1024 * 1024  #: maximum number of characters in a list of hosts, enough for 100,000 names
_OPTION = "--hosts"


def filled_in(pattern: str) -> str:
    """Replace each ``^FILE`` in a ``--hosts`` pattern by the hosts in this file; ``!^FILE`` excludes these hosts.

    Lines contain names or terms, separated by commas or blanks; ``#`` begins a comment. Raises ``InputError`` for an
    invalid file.
    """
    if MARK not in pattern:
        return pattern
    return ",".join(part for term in pattern.split(",") for part in _of_term(term.strip()))


def _of_term(term: str) -> list[str]:
    sign = term[:1] if term[:1] in ("!", "&") else ""
    name = term.removeprefix(sign)
    if not name.startswith(MARK):
        return [term]
    if sign == "&":
        raise InputError(
            f"{term!r}: '&' is not allowed before a file; name the file first, then '&' and the group", _OPTION
        )
    listed = _listed(name.removeprefix(MARK))
    if not sign:
        return listed
    from hostwright.inventory.patterns import terms

    excluded = terms(",".join(listed))
    if any(one[0] in "!&" for one in excluded):
        raise InputError(f"{term!r}: a file after '!' must not contain terms with '!' or '&'", _OPTION)
    return [sign + one for one in excluded]


def _listed(name: str) -> list[str]:
    where = "standard input" if name == STDOUT else name
    try:
        if name == STDOUT:
            text = sys.stdin.read(LARGEST + 1)
        else:
            with expanded(name).open(encoding="utf-8") as file:
                text = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"{where}: {unread(error)}", _OPTION) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: is not UTF-8 text", _OPTION) from error
    if len(text) > LARGEST:
        raise InputError(f"{where}: is longer than {LARGEST // 1024**2} MiB, the limit for a list of hosts", _OPTION)
    lines = (line.partition("#")[0] for line in text.splitlines())
    listed = [term for line in lines for term in line.replace(",", " ").split()]
    if not listed:
        raise InputError(f"{where}: contains no host", _OPTION)
    return listed
