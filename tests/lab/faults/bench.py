"""The hosts that are disturbed: a lab with one snapshot before each layer, and one host a lane.

The snapshots are made once, by provisioning a host layer by layer; they stay as long as the lab does.
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

SMALL = HostOptions(profile="small")  #: the large math libraries are stand-ins: minutes less
DISK_BYTES = 26_000_000_000  #: a bare host is refused below 20 GB; the file is sparse
OWN_DISK = HostOptions(profile="small", disk_bytes=DISK_BYTES)
STACK = "lab"
LAYER_TIMEOUT_S = 900.0

_DAEMON = "install -d /etc/docker && printf '%s\\n' \"$1\" >/etc/docker/daemon.json"


@dataclass
class Bench:
    """One lab, what is known of its layers, and a folder for what the trials write."""

    lab: Lab
    sums: Sums = field(default_factory=Sums)
    references: dict[str, Reference] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def work(self) -> Path:
        """Where trials keep inventories and journals; it goes with the lab."""
        return self.lab.state / "trials"

    def reference(self, layer: str) -> Reference:
        """What is known of a layer's run without a fault."""
        return self.references[layer]

    def keep_reference(self, reference: Reference) -> None:
        """Remember how a layer runs without a fault, also for the next suite on this lab."""
        with self.lock:
            self.references[reference.layer] = reference
            text = json.dumps([asdict(one) for one in self.references.values()])
            (self.work / "references.json").write_text(text)

    def machine(self, name: str, *, own_disk: bool = False) -> Machine:
        """A host of this lab, made where there is none."""
        with self.lock:
            if name not in read_records(self.lab):
                bare = read_snapshots(self.lab)[BARE]
                fleet.up(self.lab, [name], options=OWN_DISK if own_disk else SMALL, snapshot=bare)
            return find_machine(self.lab, name)

    def prepare(self, machine: Machine, layer: Layer) -> None:
        """Bring a host to the state before a layer: its disk is that of the snapshot, it is booted and answers."""
        snapshots.thaw(machine, read_snapshots(self.lab)[layer.before])
        if layer.name == "container":
            console(machine, "sh", "-euc", _DAEMON, "sh", json.dumps(DAEMON_BEFORE))

    def inventory(self, folder: Path, hosts: Sequence[str], **variables: Any) -> Path:
        """An inventory of some hosts in a folder of its own, so that its journal is its own as well.

        ``variables`` are set for all its hosts, and win over what the lab says of them.
        """
        data = yaml.safe_load(self.lab.inventory.read_text())
        data["lab"]["hosts"] = {name: {**data["lab"]["hosts"][name], **variables} for name in hosts}
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(self.lab.stack.parent, folder / "stacks", dirs_exist_ok=True)
        (folder / "lab.yml").write_text(yaml.safe_dump(data))
        return folder


def open_bench(name: str, *, layers: tuple[str, ...] = tuple(LAYERS)) -> Bench:
    """A lab with the snapshots that these layers need; those that are there already are kept."""
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
    """What stands between a host and these roles, asked afresh. Raises `HostwrightError` where it cannot be asked."""
    target = Fleet.load(inventory).targets(host, roles)[0]
    with target.connect() as shell:
        return make_plan(target.desired, observe(shell, target.desired))


def failed_checks(inventory: Path, host: str, layer: Layer) -> list[str]:
    """The checks of a layer that do not hold on a host, each with its reason. Raises `HostwrightError` likewise."""
    loaded = Fleet.load(inventory)
    checks = check_layers(loaded.targets(host, (layer.name,))[0], loaded, None)
    return [f"{check.sentence.splitlines()[0]}: {check.why}" for check in checks if not check.passed]
