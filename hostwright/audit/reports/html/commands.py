"""What to type about a host, ready to be copied from the page. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hostwright.audit.fleetaudit import HostAudit
from hostwright.audit.reports.diagnosis import provisioned

#: the names for which there are commands: such as no shell reads otherwise, and no selection of hosts
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


def commands(host: HostAudit, options: str) -> list[tuple[str, str]]:
    """What each does, and its command line; ``options`` end it, such as `` --inventory site``.

    >>> host = HostAudit("gpu01", "house", "2026-11-21T10:00:00+00:00", "unread", "no route to host")
    >>> commands(host, "")[0]
    ('look again', 'hostwright audit --hosts gpu01')
    """
    if not _PLAIN.fullmatch(host.host):
        return []
    return [(what, f"hostwright {words}{options}") for what, words in _commands(host)]


def _commands(host: HostAudit) -> Iterator[tuple[str, str]]:
    name = host.host
    if host.sentence:
        yield "look again", f"audit --hosts {name}"
    if host.findings:
        yield "its known failures as of now", f"doctor --hosts {name}"
    if host.deviations:
        yield "what would be changed", f"plan --hosts {name}"
        yield "put it right", f"provision --hosts {name}"
    if host.sentence or any(finding.grave and not provisioned(finding, host) for finding in host.findings):
        yield "how it would be brought back", f"rebuild --hosts {name} --check"
    if locked(host.notes):
        yield "who locked it, and until when", f"lock --list --hosts {name}"
    yield "what audits saw of it", f"audit.history --hosts {name}"


def locked(notes: Sequence[str]) -> bool:
    """Whether one of a host's notes is an operator's lock."""
    return any(note.startswith("locked") for note in notes)
