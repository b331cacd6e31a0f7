"""Remove lines that report no failure from an output.

These are Hostwright's notes, and failed attempts that a successful one follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.plan.host.jobs import NOTE


@dataclass(frozen=True, slots=True)
class Try:
    """A failed attempt of a tool that is harmless if a later attempt succeeds.

    A line with one of the texts ``failed`` is harmless if this line or one of the next ``lines`` contains one of
    ``worked``.
    """

    failed: tuple[str, ...]
    worked: tuple[str, ...]
    lines: int


_TRIES = (
    # pip: the file was downloaded or found later
    Try(("Retrying (Retry(",), ("Downloading ", "Using cached ", "Installing coll", "Successfully inst"), 12),
    # wget: another address of the same server responded
    Try(("... failed: Connection", "... failed: Network", "... failed: No route"), ("... connected.",), 6),
    # dpkg: another package provides the missing one
    Try((" is not installed",), (" which provides ",), 1),
)


def without_notes(output: str) -> str:
    """``output`` without Hostwright's notes."""
    return "\n".join(line for line in output.split("\n") if not line.startswith(NOTE))


def without_tries(output: str, more: tuple[Try, ...] = ()) -> str:
    """``output`` without failed attempts that were followed by a successful one. ``more`` are the attempts of roles."""
    lines = list(_not_ignored(output.split("\n")))
    for tried in (*_TRIES, *more):
        lines = _without(tried, lines)
    return "\n".join(lines)


def _not_ignored(lines: list[str]) -> Iterator[str]:
    """Skip errors that apt ignores (``Ign:2``), and the reason that it prints indented below."""
    ignored = False
    for line in lines:
        ignored = line.startswith(("Ign:", "Ign ")) or (ignored and line.startswith("  "))
        if not ignored:
            yield line


def _without(tried: Try, lines: list[str]) -> list[str]:
    """Remove the harmless failures of ``tried``; reads the lines backwards, so that each is checked once."""
    kept: list[str] = []
    since = tried.lines + 1  #: distance in lines to the next line below that reports success
    worked, failed = ([text.lower() for text in texts] for texts in (tried.worked, tried.failed))
    for line in reversed(lines):
        plain = line.lower()
        since = 0 if any(text in plain for text in worked) else since + 1
        if since > tried.lines or not any(text in plain for text in failed):
            kept.append(line)
    return kept[::-1]
