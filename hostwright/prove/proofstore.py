"""Stores the results of proofs on this machine: figures in the history of audits, and the baselines of hosts.

If the history cannot be used, Hostwright prints a warning and continues the proofs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from hostwright.apply.journal.redaction import Redactor, secrets_in
from hostwright.audit.besteffort import BestEffort
from hostwright.audit.history.pruning import DAY_S, KEEP_DAYS
from hostwright.audit.history.reading import inventory_id
from hostwright.audit.history.schema import opened
from hostwright.audit.history.store import FILE
from hostwright.audit.history.writing import epoch
from hostwright.common.places import place_of, state_root
from hostwright.common.secret import Secret
from hostwright.plan.targets import Roster, Targets
from hostwright.prove.fleetproof import FleetProof, HostProof
from hostwright.prove.judging import Baseline, Kept
from hostwright.prove.model import Measurement, ProofResult

PLOT_DAYS = 90  #: number of days that the plots of the HTML report cover, as for audits
#: maximum number of points in all plots of the HTML report: a thousand hosts with 20 proofs of 10 figures
MOST_POINTS = 200_000


@dataclass(frozen=True, slots=True)
class PastFigure:
    """One figure of an earlier proof of a host. ``at`` is the time of the proof in seconds since 1970."""

    host: str
    proof: str
    name: str
    device: str
    unit: str
    at: int
    value: float


class ProofHistory:
    """The measured figures of earlier proofs, for all inventories on this machine, in one file below ``root``.

    Methods raise ``HostwrightError`` if the file cannot be used.
    """

    def __init__(self, root: Path):
        self.path = root / FILE

    def add(self, fleet: FleetProof, *, baseline: bool = False) -> None:
        """Write the results ``fleet`` of a run to the history in one transaction.

        With ``baseline``, the figures of passed proofs become the hosts' baselines.
        """
        at, place = epoch(fleet.at), place_of(fleet.inventory)
        with opened(self.path, write=True) as db:
            db.execute("INSERT INTO inventory (place) VALUES (?) ON CONFLICT DO NOTHING", (place,))
            (inventory,) = db.execute("SELECT id FROM inventory WHERE place = ?", (place,)).fetchone()
            for host in fleet.hosts:
                for result in host.results:
                    _write(db, (inventory, host.host, at, fleet.run), result)
                    if baseline and result.outcome == "passed":
                        _keep(db, (inventory, host.host, result.proof), at, result)
            _prune(db, at)

    def baseline(self, inventory: str | Path, host_name: str) -> Baseline:
        """Return the baseline figures of a host of an inventory; may be empty."""
        with opened(self.path, write=False) as db:
            query = "SELECT proof, name, device, at, value FROM baseline WHERE inventory = ? AND host = ?"
            rows = db.execute(query, (inventory_id(db, inventory), host_name)).fetchall()
        return {
            (proof, name, device): Kept(datetime.fromtimestamp(at, UTC).isoformat(), float(value))
            for proof, name, device, at, value in rows
        }

    def past(self, inventory: str | Path, hosts: Collection[str], since: int) -> tuple[PastFigure, ...]:
        """Return the figures of these hosts since the time ``since`` (in seconds since 1970), the oldest first."""
        query = (
            "SELECT host, proof.proof, name, device, unit, at, value FROM proof JOIN measured "
            "ON measured.proof = proof.id WHERE inventory = ? AND at >= ? AND better != '' ORDER BY proof.id LIMIT ?"
        )
        with opened(self.path, write=False) as db:
            rows = db.execute(query, (inventory_id(db, inventory), since, MOST_POINTS)).fetchall()
        return tuple(PastFigure(*row) for row in rows if row[0] in hosts)


def _write(db: sqlite3.Connection, of: tuple[int, str, int, str], result: ProofResult) -> None:
    values = (*of, result.proof, result.outcome, result.took_s, result.sha256)
    query = (
        "INSERT INTO proof (inventory, host, at, run, proof, outcome, took_s, sha256) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    )
    number = db.execute(query, values).lastrowid
    figures = ((number, one.name, one.device, one.number, one.unit, one.better) for one in _figures(result))
    db.executemany("INSERT INTO measured VALUES (?, ?, ?, ?, ?, ?)", figures)


def _keep(db: sqlite3.Connection, of: tuple[int, str, str], at: int, result: ProofResult) -> None:
    """Replace all baseline figures of the proof on the host, because the host may no longer have the card that old
    figures are about.
    """
    db.execute("DELETE FROM baseline WHERE inventory = ? AND host = ? AND proof = ?", of)
    figures = ((*of, one.name, one.device, at, one.number) for one in _figures(result) if one.better)
    db.executemany("INSERT INTO baseline VALUES (?, ?, ?, ?, ?, ?, ?)", figures)


def _figures(result: ProofResult) -> Sequence[Measurement]:
    return [one for one in result.measurements if one.number is not None]


def _prune(db: sqlite3.Connection, now: int) -> None:
    before = (now - KEEP_DAYS * DAY_S,)
    db.execute("DELETE FROM measured WHERE proof IN (SELECT id FROM proof WHERE at < ?)", before)
    db.execute("DELETE FROM proof WHERE at < ?", before)


class ProofStore:
    """The measured figures of earlier proofs of one inventory. If the figures cannot be read or written, ``warn`` is
    called once.
    """

    def __init__(self, roster: Roster, targets: Targets, secrets: Sequence[Secret], warn: Callable[[str], None]):
        self._inventory = str(roster.path)
        self._redactor = Redactor({*secrets_in(roster.inventory.hosts.values(), targets), *secrets})
        self._attempt = BestEffort(warn, "the history of proofs", "The proofs continue")
        self._history = ProofHistory(state_root())

    def clean(self, host: HostProof) -> HostProof:
        """Return the results of a host with secrets masked."""
        text = self._redactor.text
        return replace(host, sentence=text(host.sentence), results=tuple(map(self._cleaned, host.results)))

    def _cleaned(self, result: ProofResult) -> ProofResult:
        text = self._redactor.text
        measurements = tuple(
            replace(one, device=text(one.device), value=text(one.value) if isinstance(one.value, str) else one.value)
            for one in result.measurements
        )
        findings = tuple(
            replace(one, sentence=text(one.sentence), measured=text(one.measured), device=text(one.device))
            for one in result.findings
        )
        return replace(result, sentence=text(result.sentence), measurements=measurements, findings=findings)

    def add(self, fleet: FleetProof, *, baseline: bool) -> None:
        """Add the results of a run to the history. Never raises an error: a failure is only a warning."""
        self._attempt(lambda: self._history.add(fleet, baseline=baseline))

    def baseline(self, name: str) -> Baseline:
        """Return the baseline figures of the host ``name``; empty if the history cannot be read."""
        return self._attempt(lambda: self._history.baseline(self._inventory, name)) or {}

    def past(self, fleet: FleetProof) -> tuple[PastFigure, ...]:
        """Return the figures of the hosts in ``fleet`` from the last ``PLOT_DAYS`` days, including this run."""
        since, hosts = epoch(fleet.at) - PLOT_DAYS * DAY_S, {host.host for host in fleet.hosts}
        return self._attempt(lambda: self._history.past(self._inventory, hosts, since)) or ()
