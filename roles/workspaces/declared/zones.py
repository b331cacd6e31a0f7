"""Checks of time zones in the environment variable ``TZ`` of a workspace."""

from __future__ import annotations

import re
import zoneinfo
from contextlib import suppress
from functools import cache
from pathlib import Path

from hostwright.roles import nearest

FILES = "/usr/share/zoneinfo/"
_NAME = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*")
_OFFSET = r"[+-]?[0-9]{1,2}(?::[0-9]{2}){0,2}"
_SHORT = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)"
#: pattern of a time zone rule (POSIX, 8.3) such as ``CET-1CEST,M3.5.0,M10.5.0/3``, which needs no zone file
_RULE = re.compile(f"{_SHORT}{_OFFSET}(?:{_SHORT}(?:{_OFFSET})?(?:,[^,]+,[^,]+)?)?")
#: pattern of names of UTC, which need no zone file
_UTC = re.compile(r"(?:Etc/)?(?:UTC|UCT|GMT|Greenwich|Universal|Zulu)")


def zone_of(value: str) -> str:
    """Return the time zone in ``value`` that needs a zone file; empty for a rule, UTC, or a file in another directory.

    >>> zone_of("Europe/Berlin"), zone_of("CET-1CEST"), zone_of("UTC")
    ('Europe/Berlin', '', '')
    """
    name = value.removeprefix(":").removeprefix(FILES)
    return "" if not name or name.startswith("/") or _RULE.fullmatch(name) or _UTC.fullmatch(name) else name


def checked_zone(value: str) -> str:
    """Return ``value``, a value of ``TZ``. Raises ``ValueError`` for a time zone that is not in this machine's
    database.
    """
    zone = zone_of(value)
    known = _known()
    if not zone or (_NAME.fullmatch(zone) and (not known or re.sub("^(?:posix|right)/", "", zone) in known)):
        return value
    places = {name.rpartition("/")[2].casefold(): name for name in known}
    near = places.get(zone.casefold()) or nearest(zone, known)
    hint = f"did you mean {near!r}?" if near else "expected one such as Europe/Berlin, or a rule such as CET-1CEST"
    raise ValueError(f"TZ: unknown time zone {zone!r}, for which programs would show UTC; {hint}")


@cache
def _known() -> frozenset[str]:
    names = zoneinfo.available_timezones()
    for folder in zoneinfo.TZPATH:
        with suppress(OSError, UnicodeError):
            links = (line.split() for line in Path(folder, "tzdata.zi").read_text("utf-8").splitlines())
            names |= {words[2] for words in links if len(words) == 3 and words[0] == "L"}
    return frozenset(names)
