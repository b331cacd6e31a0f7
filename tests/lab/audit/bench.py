"""Clones of one good host: faults planted, audited, fixed, audited again; and the audit's score."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from lab import fleet, snapshots
from lab.config import Lab
from lab.machine import console
from lab.records import Snapshot, find_machine
from tests.lab.audit.planting import Plant
from tests.lab.conftest import FrontDoor

AT_ONCE = 4  #: number of hosts that boot or are planted at a time, because this machine has few cores
SETTLE = (
    'n=0; until [ "$(systemctl is-system-running)" = running ] && '
    "{ ! systemctl -q is-enabled docker || systemctl -q is-active docker; }; do n=$((n + 1)); "
    '[ "$n" -le 600 ] || { systemctl --failed; exit 1; }; sleep 0.1; done'
)

Planted = Mapping[str, tuple[Plant, ...]]  #: host → its plants; a clean host has none


@dataclass
class Score:
    """Counts of planted faults that were found, and of reported faults that were not planted."""

    found: int = 0
    missed: list[str] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)

    @property
    def recall(self) -> float:
        """Share of the planted faults that were found."""
        return self.found / max(1, self.found + len(self.missed))

    @property
    def precision(self) -> float:
        """Share of the reported faults that were planted."""
        return self.found / max(1, self.found + len(self.invented))

    def __str__(self) -> str:
        return f"{self.found} found, recall {self.recall:.1%}, precision {self.precision:.1%}"

    def compare(self, host: str, wanted: Iterable[str], seen: Iterable[str]) -> None:
        """Count the failures of one host, by their names."""
        wanted, seen = set(wanted), set(seen)
        self.found += len(wanted & seen)
        self.missed += sorted(f"{host}: {name}" for name in wanted - seen)
        self.invented += sorted(f"{host}: {name}" for name in seen - wanted)

    def compare_states(self, host: str, wanted: Iterable[str], seen: Iterable[str]) -> None:
        """Count the states of one host; each wanted state is a prefix of a reported one."""
        wanted, seen = set(wanted), set(seen)
        for beginning in sorted(wanted):
            if any(state.startswith(beginning) for state in seen):
                self.found += 1
            else:
                self.missed.append(f"{host}: {beginning}")
        strange = (state for state in seen if not any(state.startswith(one) for one in wanted))
        self.invented += sorted(f"{host}: {state}" for state in strange)


@dataclass(frozen=True)
class Bench:
    """The hosts of one round, all clones of ``snapshot`` in ``lab``, and ``invoke``."""

    lab: Lab
    snapshot: Snapshot
    invoke: FrontDoor
    hosts: tuple[str, ...]

    @property
    def pattern(self) -> str:
        """All hosts, as a value of ``--hosts``."""
        return ",".join(self.hosts)

    def bring(self) -> None:
        """Boot the clones that do not exist yet."""
        fleet.up(self.lab, self.hosts, snapshot=self.snapshot)

    def renew(self, hosts: Iterable[str]) -> None:
        """Reset hosts to the good snapshot."""
        self._each(hosts, lambda host: snapshots.thaw(find_machine(self.lab, host), self.snapshot))

    def plant(self, planted: Planted) -> None:
        """Wait until the hosts have settled, then plant the faults."""

        def one(host: str) -> None:
            self.run(host, SETTLE)
            for each in planted[host]:
                self.run(host, each.script)

        self._each(planted, one)

    def cure_by_hand(self, planted: Planted) -> None:
        """Run the fixes of the rules that provision does not apply."""

        def one(host: str) -> None:
            for each in planted[host]:
                if each.cure:
                    self.run(host, each.cure)

        self._each(planted, one)

    def audit(self, status: int) -> dict[str, dict[str, Any]]:
        """Run ``invoke audit`` for all hosts with this exit status: host → its document.

        The status is 1 if a layer could not be read, for example because a fault keeps nvidia-smi from running.
        """
        done = self.invoke("audit", "--hosts", self.pattern, "--json")
        assert done.stdout, done.stderr
        hosts = json.loads(done.stdout)["hosts"]
        unread = any(layer["status"] == "unread" for host in hosts for layer in host["layers"])
        assert done.returncode == (1 if unread else status), f"status {done.returncode}\n{done.stderr[-3000:]}"
        return {host["host"]: host for host in hosts}

    def run(self, host: str, script: str) -> str:
        """Run a shell script as root on a host's console."""
        return console(find_machine(self.lab, host), "sh", "-euc", script)

    def _each(self, hosts: Iterable[str], action: Any) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for _ in pool.map(action, list(hosts)):
                pass


def score(planted: Planted, seen: Mapping[str, Mapping[str, Any]]) -> Score:
    """Compare an audit with the planted faults."""
    result = Score()
    for host, plants in planted.items():
        rules = {rule for one in plants for rule in one.rules}
        states = {state for one in plants for state in one.states}
        result.compare(host, rules, (finding["rule"] for finding in seen[host]["findings"]))
        result.compare_states(host, states, (deviation["what"] for deviation in seen[host]["deviations"]))
        if seen[host]["status"] == "unread":
            result.missed.append(f"{host}: it could not be read: {seen[host]['sentence']}")
    return result


def dealt(plants: Sequence[Plant], hosts: Sequence[str], clean: int) -> Planted:
    """Distribute plants over hosts, at most one per layer and host; the last ``clean`` hosts get none."""
    free: dict[str, tuple[Plant, ...]] = dict.fromkeys(hosts, ())
    for one in plants:
        able = [host for host in hosts[: len(hosts) - clean] if all(other.layer != one.layer for other in free[host])]
        chosen = min(able, key=lambda host: len(free[host]))
        free[chosen] = (*free[chosen], one)
    return free
