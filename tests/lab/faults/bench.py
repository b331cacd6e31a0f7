"""Hosts of the fault suite: a lab with one snapshot before each layer, and one host per lane.

The snapshots are made once, by provisioning a host layer by layer. They exist as long as the lab.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hostwright.common.errors import LabError
from hostwright.fleet import Fleet
from hostwright.plan.model import Plan
from hostwright.plan.observing import observe
from hostwright.plan.planning import make_plan
from hostwright.verify.checking import check_layers
from lab import fleet, snapshots
from lab.config import HostOptions, Lab, Machine
from lab.machine import console, start, wait_for_ssh
from lab.records import find_machine, open_lab, read_records, read_snapshots
from tests.lab.faults.checks import DAEMON_BEFORE, Sums
from tests.lab.faults.controller import Controller
from tests.lab.faults.layers import BARE, LAYERS, SNAPSHOTS, Layer, Reference

SMALL = HostOptions(profile="small")  #: stand-ins for the large math libraries save minutes
DISK_BYTES = 26_000_000_000  #: a bare host with less than 20 GB is refused; the file is sparse
OWN_DISK = HostOptions(profile="small", disk_bytes=DISK_BYTES)
STACK = "lab"
LAYER_TIMEOUT_S = 900.0

_DAEMON = "install -d /etc/docker && printf '%s\\n' \"$1\" >/etc/docker/daemon.json"


@dataclass
class Bench:
    """One lab, the reference runs of its layers, and a folder for the trials' files."""

    lab: Lab
    sums: Sums = field(default_factory=Sums)
    references: dict[str, Reference] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def work(self) -> Path:
        """Folder of the trials' inventories and journals, removed with the lab."""
        return self.lab.state / "trials"

    def reference(self, layer: str) -> Reference:
        """Return the reference run of a layer, without a fault."""
        return self.references[layer]

    def keep_reference(self, reference: Reference) -> None:
        """Store the reference run of a layer, also for the next suite on this lab."""
        with self.lock:
            self.references[reference.layer] = reference
            text = json.dumps([asdict(one) for one in self.references.values()])
            (self.work / "references.json").write_text(text)

    def machine(self, name: str, *, own_disk: bool = False) -> Machine:
        """Return a host of this lab; create it if it is missing."""
        with self.lock:
            if name not in read_records(self.lab):
                bare = read_snapshots(self.lab)[BARE]
                fleet.up(self.lab, [name], options=OWN_DISK if own_disk else SMALL, snapshot=bare)
            return find_machine(self.lab, name)

    def prepare(self, machine: Machine, layer: Layer) -> None:
        """Boot a host from the snapshot before a layer, and wait for SSH."""
        snapshots.thaw(machine, read_snapshots(self.lab)[layer.before])
        if layer.name == "container":
            console(machine, "sh", "-euc", _DAEMON, "sh", json.dumps(DAEMON_BEFORE))

    def inventory(self, folder: Path, hosts: Sequence[str], **variables: Any) -> Path:
        """Write an inventory of some hosts into a separate folder, so that they have a separate journal.

        ``variables`` apply to all its hosts and override the lab's.
        """
        data = yaml.safe_load(self.lab.inventory.read_text())
        data["lab"]["hosts"] = {name: {**data["lab"]["hosts"][name], **variables} for name in hosts}
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(self.lab.stack.parent, folder / "stacks", dirs_exist_ok=True)
        (folder / "lab.yml").write_text(yaml.safe_dump(data))
        return folder


def open_bench(name: str, *, layers: tuple[str, ...] = tuple(LAYERS)) -> Bench:
    """Open a lab with the snapshots for these layers; existing snapshots are kept."""
    lab = open_lab(name)
    bench = Bench(lab)
    bench.work.mkdir(parents=True, exist_ok=True)
    fleet.supply(lab, SMALL)
    wanted = {LAYERS[layer].before for layer in layers}
    last = max(SNAPSHOTS.index(one) for one in wanted)
    _snapshots(bench, SNAPSHOTS[: last + 1])
    references = bench.work / "references.json"
    if references.exists():
        bench.references = {one["layer"]: _reference(one) for one in json.loads(references.read_text())}
    return bench


def _reference(values: Mapping[str, Any]) -> Reference:
    steps = tuple((role, what, name, seconds) for role, what, name, seconds in values["steps"])
    return Reference(**{**values, "steps": steps})


def _snapshots(bench: Bench, names: tuple[str, ...]) -> None:
    lab = bench.lab
    have = read_snapshots(lab)
    missing = [name for name in names if name not in have]
    if not missing:
        return
    before = names[names.index(missing[0]) - 1] if missing[0] != BARE else None
    fleet.up(lab, ["maker"], options=SMALL)
    maker = find_machine(lab, "maker")
    inventory = bench.inventory(bench.work / "maker", ["maker"])
    _run(["mirror", "--inventory", str(inventory), "--stack", STACK], bench)
    if before is not None:
        snapshots.thaw(maker, have[before])
    for name in missing:
        if name != BARE:
            start(maker)
            wait_for_ssh(maker)
            print(f"snapshot after {name}: provisioning", flush=True)
            roles = ",".join(LAYERS[name].roles)
            _run(["provision", "--inventory", str(inventory), "--hosts", "maker", "--roles", roles], bench)
        snapshots.freeze(maker, name)
    fleet.remove(lab, ["maker"])


def _run(words: list[str], bench: Bench) -> None:
    done = Controller(words, {"HOSTWRIGHT_STATE": str(bench.work / "maker-state")})
    if not done.wait_end(LAYER_TIMEOUT_S) or done.status != 0:
        raise LabError(f"invoke {' '.join(words)} ended with {done.status}:\n{done.output}")


def plan_of(inventory: Path, host: str, roles: tuple[str, ...]) -> Plan:
    """Probe a host and return its plan for these roles. Raises `HostwrightError` if the host cannot be probed."""
    target = Fleet.load(inventory).targets(host, roles)[0]
    with target.connect() as shell:
        return make_plan(target.desired, observe(shell, target.desired))


def failed_checks(inventory: Path, host: str, layer: Layer) -> list[str]:
    """Return the failed checks of a layer, with reasons. Raises `HostwrightError` if the host cannot be checked."""
    loaded = Fleet.load(inventory)
    checks = check_layers(loaded.targets(host, (layer.name,))[0], loaded, None)
    return [f"{check.sentence.splitlines()[0]}: {check.why}" for check in checks if not check.passed]
