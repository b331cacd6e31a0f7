"""The lab of these tests: clones of one provisioned host, with real TensorFlow and without a card, and one with a card.

The card is emulated: the proofs' CUDA programs are built by g++ with the runtime of the unit tests, in which the host's
own memory and threads are the card. All else is the product's own: probes, job, compilation on the host, judging.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from hostwright.common.quoting import sh
from lab import fleet, snapshots
from lab.config import Lab, Machine
from lab.hardware import Hardware
from lab.machine import console, exec_in, start, wait_for_ssh
from lab.records import Snapshot, find_machine, read_records, read_snapshots
from tests.lab.conftest import SMALL, FrontDoor
from tests.places import PROJECT

CARD = "card01"  #: the host with a card
HOSTS = ("cpu01", "cpu02", "cpu03", "cpu04")  #: without one, and with TensorFlow
READY = "ready"  #: the snapshot of the provisioned host
WITHOUT_CARD = replace(SMALL, hardware=Hardware(cards=()))
HERE = Path(__file__).parent
EMULATED = Path("opt/hostwright-lab/emulated")
RUNTIME = PROJECT / "tests/unit/roles/cuda/proofs/emulated/cuda_runtime.h"
NVCC = "/usr/local/cuda-11.2/bin/nvcc"
SMI = "/usr/bin/nvidia-smi"
ROLES = {"lab": ["base", "cuda", "tensorflow"], CARD: ["base", "driver", "cuda"]}
#: what proofs would leave on a host beside the records of their jobs and the file of its lock: files, directories,
#: processes, listeners
LEFT = """find /var/lib/hostwright -path '*/hostwright/jobs' -prune -o -print | sort
find /run/hostwright -type f ! -name run.lock 2>/dev/null || :
pgrep -fa '[/]var/lib/hostwright/' || :
ss -Hltn 'sport >= :29471 and sport <= :29476'"""

Document = Mapping[str, Any]  #: of ``invoke prove --json``


@dataclass(frozen=True)
class Bench:
    """The hosts, and ``invoke`` on their inventory."""

    lab: Lab
    invoke: FrontDoor

    def machine(self, host: str) -> Machine:
        """A host."""
        return find_machine(self.lab, host)

    def on(self, host: str, script: str) -> str:
        """Run shell on a host as its console's root."""
        return console(self.machine(host), "sh", "-euc", script)

    def prove(self, proofs: str, *hosts: str, status: int) -> Document:
        """``invoke prove --json``, one host after the other; its exit status must be ``status``."""
        words = ("--hosts", ",".join(hosts), "--proofs", proofs, "--at-once", "1")
        told: Document = self.invoke.json("prove", *words, status=status)
        assert [host["host"] for host in told["hosts"]] == list(hosts)
        return told

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Begin a verb, and do not wait for its end."""
        verb, *rest = words
        return subprocess.Popen(
            [str(Path(sys.executable).with_name("invoke")), verb, "--inventory", str(self.lab.inventory.parent), *rest],
            cwd=PROJECT,
            env={**os.environ, "HOSTWRIGHT_STATE": str(self.lab.state / "controller")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @contextmanager
    def variables(self, host: str, **values: Any) -> Iterator[None]:
        """The inventory says this of a host for the body."""
        file = self.lab.inventory.parent / "host_vars" / f"{host}.yml"
        before = file.read_text() if file.exists() else ""
        file.write_text(yaml.safe_dump({**(yaml.safe_load(before) or {}), **values}))
        try:
            yield
        finally:
            if before:
                file.write_text(before)
            else:
                file.unlink()

    @contextmanager
    def planted(self, host: str, plant: str, cure: str) -> Iterator[None]:
        """Plant something on a host with shell for the body."""
        self.on(host, plant)
        try:
            yield
        finally:
            exec_in(self.machine(host), ["sh", "-c", cure])

    @contextmanager
    def card(self, faults: str = "", edits: str = "") -> Iterator[None]:
        """The emulated card with faults (``FLIP="0 2"``), and with edits of what nvidia-smi says, for the body."""
        place = self.machine(CARD).merged / EMULATED
        uuid = self.on(CARD, f"{SMI} --query-gpu=uuid --format=csv,noheader").strip()
        (place / "faults").write_text(f"CARDS=1\nPACE=200\nUUID={uuid}\n{faults}\n")
        (place / "edits").write_text(f"{edits}\n")
        try:
            yield
        finally:
            (place / "edits").write_text("")


def opened(lab: Lab) -> Bench:
    """The lab with its five hosts."""
    bench = Bench(lab, FrontDoor(lab))
    if READY not in read_snapshots(lab):
        _provision(bench)
    clones(bench, HOSTS)
    _emulate(bench.machine(CARD))
    return bench


def clones(bench: Bench, hosts: Iterable[str]) -> None:
    """Further hosts without a card."""
    fleet.up(bench.lab, hosts, options=WITHOUT_CARD, snapshot=ready(bench))


def ready(bench: Bench) -> Snapshot:
    """The snapshot of the provisioned host."""
    return read_snapshots(bench.lab)[READY]


def _provision(bench: Bench) -> None:
    """One host from bare to provisioned, kept as a snapshot; from then on the inventory names each host's roles."""
    lab, folder = bench.lab, bench.lab.inventory.parent
    if CARD not in read_records(lab):
        fleet.supply(lab, SMALL)
        fleet.up(lab, [CARD], options=SMALL)
    roles = "base,driver,cuda,tensorflow"
    for words in (("mirror", "--stack", "lab"), ("provision", "--hosts", CARD, "--roles", roles)):
        done = bench.invoke(*words)
        assert done.returncode == 0, f"{words}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    for kind, name in (("group_vars", "lab"), ("host_vars", CARD)):
        (folder / kind).mkdir(exist_ok=True)
        (folder / kind / f"{name}.yml").write_text(yaml.safe_dump({"hostwright_roles": ROLES[name]}))
    snapshots.freeze(bench.machine(CARD), READY)
    start(bench.machine(CARD))
    wait_for_ssh(bench.machine(CARD))


def _emulate(machine: Machine) -> None:
    """Put the emulated CUDA runtime in the place of nvcc, and the editor before nvidia-smi, until the host's next boot.

    They are mounted over the files, as long and as old as these, so that the host stays as desired.
    """
    place = machine.merged / EMULATED
    place.mkdir(parents=True, exist_ok=True)
    for file in (RUNTIME, *sorted((HERE / "emulated").iterdir())):
        (place / file.name).write_bytes(file.read_bytes())
        (place / file.name).chmod(0o755)
    (place / "edits").write_text("")
    for name, path in (("nvcc", NVCC), ("nvidia-smi", SMI)):
        mine, lab = f"/{EMULATED / name}", f"/{EMULATED / name}.lab"
        kept = sh("mountpoint -q %s || { cp -p %s %s; mount --bind %s %s; }; ", path, path, lab, mine, path)
        as_old = sh('truncate -s "$(stat -c %%s %s)" %s; touch -r %s %s', lab, mine, lab, mine)
        console(machine, "sh", "-euc", kept + as_old)


def failed(told: Document) -> dict[str, set[str]]:
    """Host → the proofs that failed on it; every other one of it passed, or says that there is no GPU."""
    assert {one["outcome"] for one in results(told)} <= {"passed", "failed", "no GPU"}, unexpected(told)
    return {
        host["host"]: {one["proof"] for one in host["results"] if one["outcome"] == "failed"} for host in told["hosts"]
    }


def results(told: Document) -> list[dict[str, Any]]:
    """All results of a document."""
    return [one for host in told["hosts"] for one in host["results"]]


def rows(told: Document) -> list[dict[str, Any]]:
    """All rows of all results."""
    return [row for one in results(told) for row in one["measurements"]]


def unexpected(told: Document) -> list[str]:
    """What an assertion shows: every result that did not pass, and why."""
    return [
        f"{host['host']} {one['proof']}: {one['outcome']}: {one['sentence']}"
        for host in told["hosts"]
        for one in host["results"]
        if one["outcome"] != "passed"
    ] + [f"{host['host']}: {host['sentence']}" for host in told["hosts"] if host["sentence"]]


def result(told: Document, host: str, proof: str) -> dict[str, Any]:
    """One proof of one host."""
    return next(
        one for each in told["hosts"] if each["host"] == host for one in each["results"] if one["proof"] == proof
    )


def values(one: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a result by name; ``None`` for what was measured on no device at all."""
    return {row["name"]: row["value"] for row in sorted(one["measurements"], key=lambda row: row["device"] != "no GPU")}
