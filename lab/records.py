"""Records of a lab and its hosts: only what the kernel cannot tell, always written by rename."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from hostwright.common.errors import LabError
from lab.config import BLOCK, DEFAULT_NAME, LAB_PREFIX, Lab, Machine, cache_directory, state_directory
from lab.locking import locked

SLOTS = 2 ** (LAB_PREFIX - BLOCK.prefixlen)


@dataclass(frozen=True, slots=True)
class HostRecord:
    """One host. Its file is written last when the host is made: a host without it was never finished."""

    name: str
    index: int  #: 1…999, gives the address and the MAC; kept over resets
    base: str  #: directory name of its base image in the cache
    host_key: str  #: public key as in the .pub file, as it was when the host was made
    options: dict[str, Any]
    snapshot: str | None = None  #: the snapshot that its disk is based on; None: only the base image
    #: Installed from a seed by its BMC: whoever had it installed decides which key is trusted, not the lab.
    seeded: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The disk of a host at one moment, below the disks of all hosts based on it. It never changes."""

    lab: Lab
    name: str
    parent: str | None  #: the snapshot that the frozen host itself was based on
    base: str  #: directory name of the base image at the bottom
    host_key: str  #: public key of the frozen host as in the .pub file: tells whose identity it contains
    options: dict[str, Any]  #: of the frozen host

    @property
    def directory(self) -> Path:
        """The directory with everything about this snapshot on the machine's disk."""
        return self.lab.state / "snapshots" / self.name

    @property
    def layer(self) -> Path:
        """What the frozen host had written on top of its parent, as an overlay layer."""
        return self.directory / "upper"

    @property
    def docker(self) -> Path:
        """The whole /var/lib/docker of the frozen host, which is not part of the overlay."""
        return self.directory / "docker"


def read_record(directory: Path) -> HostRecord:
    """Return the record in a host's directory. Raises `LabError` when there is none."""
    try:
        return HostRecord(**json.loads((directory / "host.json").read_text()))
    except FileNotFoundError as error:
        raise LabError(f"there is no lab host {directory.name}; `python -m lab status` lists the hosts") from error


def write_record(directory: Path, record: HostRecord) -> None:
    """Write the record of a host that is complete."""
    write_atomically(directory / "host.json", json.dumps(asdict(record), indent=1))


def read_records(lab: Lab) -> dict[str, HostRecord]:
    """Return the records of all finished hosts of a lab by name."""
    files = sorted((lab.state / "hosts").glob("*/host.json"))
    return {file.parent.name: read_record(file.parent) for file in files}


def read_snapshot(lab: Lab, name: str) -> Snapshot:
    """Return the snapshot ``name`` of a lab. Raises `LabError` when there is none."""
    try:
        values = json.loads((lab.state / "snapshots" / name / "snapshot.json").read_text())
    except FileNotFoundError as error:
        raise LabError(f"lab {lab.name} has no snapshot {name}; `lab.snapshots.freeze` makes one") from error
    return Snapshot(lab, **values)


def read_snapshots(lab: Lab) -> dict[str, Snapshot]:
    """Return all finished snapshots of a lab by name."""
    files = sorted((lab.state / "snapshots").glob("*/snapshot.json"))
    return {file.parent.name: read_snapshot(lab, file.parent.name) for file in files}


def write_snapshot(directory: Path, snapshot: Snapshot) -> None:
    """Write the record of a snapshot in ``directory``, which is not yet its final one."""
    values = {field.name: getattr(snapshot, field.name) for field in fields(snapshot) if field.name != "lab"}
    write_atomically(directory / "snapshot.json", json.dumps(values, indent=1))


def layers(lab: Lab, record: HostRecord) -> list[Path]:
    """Return the read-only layers below a host's own writes, the topmost first, its base image last."""
    found, name = [], record.snapshot
    while name is not None:
        snapshot = read_snapshot(lab, name)
        found.append(snapshot.layer)
        name = snapshot.parent
    return [*found, lab.cache / "base" / record.base]


def find_machine(lab: Lab, name: str) -> Machine:
    """Return the host ``name`` of a lab. Raises `LabError` when there is none."""
    return Machine(lab, name, read_record(lab.state / "hosts" / name).index)


def find_lab(name: str = DEFAULT_NAME) -> Lab | None:
    """Return the lab ``name`` if it was opened before, or None."""
    file = state_directory() / name / "lab.json"
    if not file.exists():
        return None
    return Lab(name, json.loads(file.read_text())["slot"], cache_directory(), state_directory())


def open_lab(name: str = DEFAULT_NAME) -> Lab:
    """Return the lab ``name``, with a network of its own: its former one, or the first free one."""
    Lab(name)  # refuses a bad name before anything is written
    root = state_directory()
    root.mkdir(parents=True, exist_ok=True)
    with locked("labs"):
        if known := find_lab(name):
            return known
        taken = {json.loads(file.read_text())["slot"] for file in root.glob("*/lab.json")}
        # Slot 0 is reserved for the default lab, so its addresses are always the same.
        first = 0 if name == DEFAULT_NAME else 1
        slot = next((number for number in range(first, SLOTS) if number not in taken), None)
        if slot is None:
            raise LabError(f"all {SLOTS} lab networks are in use; take one down: `python -m lab down --name …`")
        lab = Lab(name, slot, cache_directory(), root)
        lab.state.mkdir(exist_ok=True)
        write_atomically(lab.state / "lab.json", json.dumps({"slot": slot}))
        return lab


def write_atomically(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` so that a reader sees the old file or the new one."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text)
    temporary.rename(path)


def give_to_user(path: Path) -> None:
    """Give a file or directory to the user who called sudo, if any: ordinary commands read it as that user."""
    if "SUDO_UID" in os.environ:
        os.chown(path, int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"]))
