"""What Hostwright records on a host: what was there before, which release it has, and that its roles are removed."""

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
    """The records of one host, written over its connection."""

    def __init__(self, connection: HostConnection, desired: Desired, run: RunStamp):
        self._connection, self._desired, self._run = connection, desired, run

    def note_origin(self, facts: Facts) -> None:
        """Before the first change ever: record what is there, so that it can be restored. Raises ``HostError``."""
        if not self._desired.removes and not self._read(facts):
            self._write("what was there before the first change", originals.RECORD)

    def note_release(self, facts: Facts, keep: Callable[[], str]) -> str:
        """The host is as desired: record its release, and let ``keep`` store the stack on this machine.

        Returns the sentence of ``keep`` where it could not; else the empty string. Raises ``HostError``.
        """
        before, stack = self._read(facts), self._desired.stack
        record = newrelease.renewed(self._desired, before, self._run)
        if record is not None:
            former, seen = newrelease.former_name(before, stack), [role.name for role in self._desired.roles]
            script = newrelease.write_script(record, former=former, seen=seen)
            self._write(f"its release record {release.PATH}", script)
        return keep()

    def note_removal(self, facts: Facts, *, depart: bool) -> None:
        """The roles are removed: record it. With ``depart``, all that Hostwright itself kept goes as well.

        The caller says with ``depart`` that every layer is gone. The record cannot: it names no layer of a provisioning
        that never ended, and only those of the last stack. Where it names a layer that was not to go, everything stays.
        Raises ``HostError``.
        """
        before, gone = self._read(facts), [role.name for role in self._desired.roles]
        record = newrelease.reduced(before, gone)
        if depart and set(gone).issuperset(before.get("roles", ())):
            self._write("what Hostwright kept there", departure.DEPART)
        elif record is not None:
            script = newrelease.write_script(record) if record else departure.FORGET_RELEASE
            self._write(f"its release record {release.PATH}", script)

    def _read(self, facts: Facts) -> Mapping[str, Any]:
        """The record as it is; raises ``Refused`` for one of a newer Hostwright, which is never replaced."""
        if sentence := release.refusal(facts):
            raise Refused(self._desired.host, sentence)
        return release.read(facts)

    def _write(self, what: str, script: str) -> None:
        self._connection.run(script, timeout_s=TIMEOUT_S, failure=f"{what} cannot be written")
