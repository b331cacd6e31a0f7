"""Reader of a host's kernel log of the last seven days, for messages about GPUs.

The log is read from rsyslog's files too, because a journal kept only in memory begins with the last boot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from hostwright.resources import Probe
from hostwright.roles import sh_file

WINDOW = timedelta(days=7)  #: maximum age of a kernel message that is read
#: maximum number of kernel messages: sum of the limits of the probe's three sources
MAX_LINES = 1200
#: maximum time by which a host's clock may be ahead of this machine's. A later date without a year is of last year.
SKEW = timedelta(days=1)

#: probe that prints the host's offset from UTC, then lines of the kernel log
KERNEL_LOG = Probe(
    sh_file(__file__, "kernellog.sh"),
    root=True,
    cap_bytes=384 * 1024,  # three sources have up to 400 lines of 300 characters
)

_ISO = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:?\d\d))\s+(.*)", re.DOTALL)
_TRADITIONAL = re.compile(r"([A-Z][a-z]{2})\s+(\d{1,2})\s+(\d\d):(\d\d):(\d\d)\s+(.*)", re.DOTALL)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
#: pattern of a log line's start, with host name, the tag ``kernel:`` and the seconds since boot
_PREFIX = re.compile(r"(?:[^\s:]+\s+)?kernel:\s*(?:\[\s*\d+\.\d+\]\s*)?(?:\[\s*[TC]\d+\]\s*)?")
_OFFSET = re.compile(r"([+-])(\d\d)([0-5]\d)")


@dataclass(frozen=True, slots=True)
class KernelLine:
    """Kernel log message without host, tag and time. ``at``: time of the message in UTC; ``None`` if unknown."""

    at: datetime | None
    text: str


def kernel_lines(text: str, now: datetime) -> tuple[KernelLine, ...]:
    """Return the messages in the output of ``KERNEL_LOG``, oldest first, each once.

    A time without a zone is local time of the host, with the offset in the first line. Messages from files count only
    before the journal's first entry, because users can write lines into the files.
    """
    first, _, rest = text.partition("\n")
    zone = _zone(first)
    journal: list[KernelLine] = []
    files: list[KernelLine] = []
    into, since = files, None
    for raw in (text if zone is None else rest).split("\n"):
        if raw in {"source journal", "source file"}:
            into = journal if raw == "source journal" else files
        elif raw.startswith("since "):
            since = since or (_iso(raw.removeprefix("since ")) if into is journal else None)
        elif raw.strip():
            into.append(_line(raw.rstrip("\r"), zone or UTC, now))
    in_journal = {key for line in journal for key in _keys(line)}
    before = (line for line in files if since is None or (line.at is not None and line.at < since))
    lines = [*journal, *(line for line in before if _keys(line)[0] not in in_journal)]
    recent = [line for line in lines if line.at is None or now - line.at <= WINDOW]
    return tuple(sorted(recent, key=lambda line: line.at or datetime.min.replace(tzinfo=UTC))[-MAX_LINES:])


def _keys(line: KernelLine) -> tuple[tuple[str, int], ...]:
    """Return keys that identify ``line`` in other sources.

    The keys cover three minutes, because sources record different times.
    """
    minute = int(line.at.timestamp() // 60) if line.at else 0
    return tuple((line.text, near) for near in (minute, minute - 1, minute + 1))


def _line(raw: str, zone: tzinfo, now: datetime) -> KernelLine:
    at, rest = None, raw
    if match := _ISO.fullmatch(raw):
        at, rest = _iso(match[1]), match[2]
    elif match := _TRADITIONAL.fullmatch(raw):
        at, rest = _without_year(match, zone, now), match[6]
    prefix = _PREFIX.match(rest)
    return KernelLine(at, rest[prefix.end() if prefix else 0 :].strip())


def _iso(stamp: str) -> datetime | None:
    try:
        return datetime.fromisoformat(stamp).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _without_year(match: re.Match[str], zone: tzinfo, now: datetime) -> datetime | None:
    for year in (now.year + 1, now.year, now.year - 1):  # on the host's clock, the next year may have begun
        try:
            month = _MONTHS.index(match[1]) + 1
            day, hour, minute, second = (int(match[number]) for number in (2, 3, 4, 5))
            at = datetime(year, month, day, hour, minute, second, tzinfo=zone).astimezone(UTC)
        except (ValueError, OverflowError):
            continue
        if at - now <= SKEW:
            return at
    return None


def _zone(line: str) -> tzinfo | None:
    match = _OFFSET.fullmatch(line.strip())
    if match is None or int(match[2]) > 23:
        return None
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return timezone(-offset if match[1] == "-" else offset)
