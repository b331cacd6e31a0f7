"""Hostwright commands for a host, which the HTML page offers for copying. All functions are pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hostwright.audit.fleetaudit import HostAudit
from hostwright.audit.reports.diagnosis import provisioned

#: pattern of host names without characters that a shell or a host pattern interprets
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


def commands(host: HostAudit, options: str) -> list[tuple[str, str]]:
    """Return pairs of a description and a command line for ``host``.

    ``options`` are appended to each command, such as `` --inventory site``.

    >>> host = HostAudit("gpu01", "house", "2026-11-21T10:00:00+00:00", "unread", "no route to host")
    >>> commands(host, "")[0]
    ('audit it again', 'hostwright audit --hosts gpu01')
    """
    if not _PLAIN.fullmatch(host.host):
        return []
    return [(what, f"hostwright {words}{options}") for what, words in _commands(host)]


def _commands(host: HostAudit) -> Iterator[tuple[str, str]]:
    name = host.host
    if host.sentence:
        yield "audit it again", f"audit --hosts {name}"
    if host.findings:
        yield "current known failures", f"doctor --hosts {name}"
    if host.deviations:
        yield "changes that provisioning would make", f"plan --hosts {name}"
        yield "make these changes", f"provision --hosts {name}"
    if host.sentence or any(finding.grave and not provisioned(finding, host) for finding in host.findings):
        yield "what a rebuild would do", f"rebuild --hosts {name} --check"
    if locked(host.notes):
        yield "owner and end of the lock", f"lock --list --hosts {name}"
    yield "history of its audits", f"audit.history --hosts {name}"


def locked(notes: Sequence[str]) -> bool:
    """Return whether one of a host's notes reports an operator's lock."""
    return any(note.startswith("locked") for note in notes)
