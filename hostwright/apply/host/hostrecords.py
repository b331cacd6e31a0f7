"""Writes Hostwright's records on a host: of its original state, its release, and the removal of roles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hostwright.apply.host import departure
from hostwright.apply.host.connection import HostConnection
from hostwright.common.errors import Refused
from hostwright.plan.desired import Desired
from hostwright.plan.host import newrelease, release
from hostwright.plan.host.release import RunStamp
from hostwright.plan.model import Facts
from hostwright.resources import originals

TIMEOUT_S = 60.0


class HostRecords:
    """Writes Hostwright's records on one host."""

    def __init__(self, connection: HostConnection, desired: Desired, run: RunStamp):
        self._connection, self._desired, self._run = connection, desired, run

    def note_origin(self, facts: Facts) -> None:
        """Record the host's original state before the first change of the host.

        Raises ``HostError`` if the record cannot be written.
        """
        if not self._desired.removes and not self._read(facts):
            self._write("the record of the original state", originals.RECORD)

    def note_release(self, facts: Facts, keep: Callable[[], str]) -> str:
        """Record the release of a host that is as desired. Return the error message of ``keep``, or an empty string.

        ``keep`` stores the stack on this machine. Raises ``HostError`` if the record cannot be written.
        """
        before, stack = self._read(facts), self._desired.stack
        record = newrelease.renewed(self._desired, before, self._run)
        if record is not None:
            former, seen = newrelease.former_name(before, stack), [role.name for role in self._desired.roles]
            script = newrelease.write_script(record, former=former, seen=seen)
            self._write(f"its release record {release.PATH}", script)
        return keep()

    def note_removal(self, facts: Facts, *, depart: bool) -> None:
        """Record that the roles are removed from the host. With ``depart``, also remove Hostwright's own files.

        Set ``depart`` only if every layer was removed. If the record has another layer, these files stay. Raises
        ``HostError`` if the record cannot be written.
        """
        before, gone = self._read(facts), [role.name for role in self._desired.roles]
        record = newrelease.reduced(before, gone)
        if depart and set(gone).issuperset(before.get("roles", ())):
            self._write("Hostwright's own files", departure.DEPART)
        elif record is not None:
            script = newrelease.write_script(record) if record else departure.FORGET_RELEASE
            self._write(f"its release record {release.PATH}", script)

    def _read(self, facts: Facts) -> Mapping[str, Any]:
        """Return the host's current release record. Raises ``Refused`` if a newer Hostwright wrote the record."""
        if sentence := release.refusal(facts):
            raise Refused(self._desired.host, sentence)
        return release.read(facts)

    def _write(self, what: str, script: str) -> None:
        self._connection.run(script, timeout_s=TIMEOUT_S, failure=f"{what} cannot be changed")
