"""Remove lines from a tool's output that do not report a failure, such as attempts that later succeeded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.plan.host.jobs import NOTE


@dataclass(frozen=True, slots=True)
class Try:
    """A message about a failed attempt. The message is harmless if a later attempt succeeds.

    A line with one of the texts ``failed`` is harmless if one of the texts ``worked`` is in the same line or in one of
    the next ``lines`` lines.
    """

    failed: tuple[str, ...]
    worked: tuple[str, ...]
    lines: int


_TRIES = (
    # pip prints the second texts when a retry finds or downloads the file.
    Try(("Retrying (Retry(",), ("Downloading ", "Using cached ", "Installing coll", "Successfully inst"), 12),
    # wget prints the second text when another address of the server responds.
    Try(("... failed: Connection", "... failed: Network", "... failed: No route"), ("... connected.",), 6),
    # dpkg prints the second text when another package provides the missing one.
    Try((" is not installed",), (" which provides ",), 1),
)


def without_notes(output: str) -> str:
    """Return ``output`` without the lines that Hostwright itself added."""
    return "\n".join(line for line in output.split("\n") if not line.startswith(NOTE))


def without_tries(output: str, more: tuple[Try, ...] = ()) -> str:
    """Return ``output`` without attempts that later succeeded, for the tools known here and for ``more``."""
    lines = list(_not_ignored(output.split("\n")))
    for tried in (*_TRIES, *more):
        lines = _without(tried, lines)
    return "\n".join(lines)


def _not_ignored(lines: list[str]) -> Iterator[str]:
    ignored = False
    for line in lines:
        ignored = line.startswith(("Ign:", "Ign ")) or (ignored and line.startswith("  "))
        if not ignored:
            yield line


def _without(tried: Try, lines: list[str]) -> list[str]:
    kept: list[str] = []
    since = tried.lines + 1
    worked, failed = ([text.lower() for text in texts] for texts in (tried.worked, tried.failed))
    for line in reversed(lines):
        plain = line.lower()
        since = 0 if any(text in plain for text in worked) else since + 1
        if since > tried.lines or not any(text in plain for text in failed):
            kept.append(line)
    return kept[::-1]
