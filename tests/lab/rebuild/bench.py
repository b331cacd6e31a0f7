"""Clones of one good host, in a separate lab with BMCs: broken, rebuilt with one command, and checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from lab import fleet, snapshots
from lab.config import HostOptions, Lab, Machine
from lab.records import Snapshot, find_machine, read_records, read_snapshots
from tests.lab.audit.bench import AT_ONCE, SETTLE
from tests.lab.conftest import SMALL, FrontDoor, on

Roles = tuple[str, ...]
GOOD = "good"  #: prefix of the names of good hosts
BOOT_ID = "/proc/sys/kernel/random/boot_id"


@dataclass(frozen=True)
class Told:
    """Output of one ``invoke rebuild --json``: each host's record, and the errors of hosts without one."""

    status: int
    rebuilds: Mapping[str, Mapping[str, Any]]
    errors: Mapping[str, str]

    def way(self, host: str) -> str:
        """Return the methods of a host's rebuild, from its record."""
        return " + ".join(self.rebuilds[host]["ways"])

    def phases(self, host: str) -> dict[str, float]:
        """Return the seconds of each phase that the host went through."""
        return {name: float(seconds) for name, seconds in self.rebuilds[host]["phases"]}


@dataclass(frozen=True)
class Bench:
    """The lab and ``invoke``. ``story`` collects the rows of the final table."""

    lab: Lab
    invoke: FrontDoor
    story: list[tuple[str, str, str, Mapping[str, float], float]] = field(default_factory=list)

    def machine(self, host: str) -> Machine:
        """Return a host of the lab."""
        return find_machine(self.lab, host)

    def good(self, roles: Roles = ()) -> Snapshot:
        """Return a host with these roles (none: its whole stack), provisioned on first use and frozen."""
        name = "".join((GOOD, *roles))
        frozen = read_snapshots(self.lab)
        if name in frozen:
            return frozen[name]
        fleet.supply(self.lab, SMALL)
        fleet.up(self.lab, [name], options=SMALL, bmc=True)
        self._has(name, roles)
        for words in (("mirror", "--stack", "lab"), ("provision", "--hosts", name)):
            done = self.invoke(*words)
            assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return snapshots.freeze(self.machine(name), name)

    def _has(self, host: str, roles: Roles) -> None:
        if roles:
            self.say(host, hostwright_roles=list(roles))

    @contextmanager
    def clones(self, hosts: Mapping[str, HostOptions | None], roles: Roles = ()) -> Iterator[None]:
        """Clones of the good host with these options during the body, after their services have settled."""
        snapshot = self.good(roles)
        try:
            for kind in dict.fromkeys(hosts.values()):
                names = [host for host, options in hosts.items() if options == kind]
                fleet.up(self.lab, names, options=kind, snapshot=snapshot)
            for host in hosts:
                self._has(host, roles)
            self.each(hosts, lambda host: on(self.machine(host), SETTLE))
            yield
        finally:
            fleet.remove(self.lab, [host for host in hosts if host in read_records(self.lab)])
            for host in hosts:
                self._variables(host).unlink(missing_ok=True)

    def each(self, hosts: Iterable[str], action: Callable[[str], object]) -> None:
        """Call ``action`` for several hosts at a time; raises the first error."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for _ in pool.map(action, list(hosts)):
                pass

    def say(self, host: str, **variables: Any) -> None:
        """Write variables of one host into the inventory."""
        place = self._variables(host)
        place.parent.mkdir(exist_ok=True)
        place.write_text(yaml.safe_dump(variables))

    def rebuild(self, hosts: Iterable[str], *words: str) -> Told:
        """Run ``invoke rebuild`` for these hosts without confirmation."""
        done = self.invoke("rebuild", "--hosts", ",".join(hosts), "--json", *words)
        assert done.stdout, f"{done.returncode}\n{done.stderr[-3000:]}"
        document = json.loads(done.stdout)
        assert not document["untouched"], document["stopped_because"]
        rebuilds = {one["host"]: one for one in document["rebuilds"]}
        return Told(done.returncode, rebuilds, {one["host"]: one["sentence"] for one in document["errors"]})

    def audit(self, hosts: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Run ``invoke audit``: host → its document."""
        done = self.invoke("audit", "--hosts", ",".join(hosts), "--json")
        return {one["host"]: one for one in json.loads(done.stdout)["hosts"]}

    def locks(self, hosts: Iterable[str]) -> dict[str, str]:
        """Run ``invoke lock --list``: host → reason of its lock, on the host or on this machine; empty: unlocked."""
        done = self.invoke("lock", "--list", "--hosts", ",".join(hosts), "--json")
        found = json.loads(done.stdout)["hosts"]
        return {one["host"]: ((one["lock"] or one["set_aside"] or {}).get("reason", "")) for one in found}

    def tell(self, state: str, host: str, told: Told) -> None:
        """Record a rebuild for the final table."""
        way, total_s = told.way(host), float(told.rebuilds[host]["total_s"])
        self.story.append((state, way, told.rebuilds[host]["outcome"], told.phases(host), total_s))

    def table(self) -> str:
        """Return states, methods and seconds by phase as a table."""
        rows = [f"{'state':<36}{'way':<32}{'outcome':<13}{'total':>7}  phases"]
        for state, way, outcome, phases, total_s in self.story:
            seconds = "  ".join(f"{name} {took_s:.1f}" for name, took_s in phases.items())
            rows.append(f"{state:<36}{way:<32}{outcome:<13}{total_s:>5.0f} s  {seconds}")
        return "\n".join(rows)

    def _variables(self, host: str) -> Path:
        return self.lab.inventory.parent / "host_vars" / f"{host}.yml"


def untouched(machine: Machine) -> str:
    """Return what any work on a host would change: its boot id, and Hostwright's files on it."""
    return on(machine, f"cat {BOOT_ID}; find /var/lib/hostwright -printf '%p %s %T@\\n' | sort")
