"""Records of a lab and its hosts: facts that the kernel does not have."""

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
    """Record of one host. A host without a record is incomplete, because the record is written last."""

    name: str
    index: int  #: number of the host from 1 to 999, kept across resets. The number determines IP and MAC address.
    base: str  #: directory name of the host's base image
    host_key: str  #: public host key in the format of a .pub file
    options: dict[str, Any]
    snapshot: str | None = None  #: name of the snapshot below the host's disk; None: only the base image
    #: whether the BMC installed the host from a seed. Existing lines of known_hosts are then kept.
    seeded: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Saved disk of a host. The saved disk never changes, because other hosts' disks are based on it."""

    lab: Lab
    name: str
    parent: str | None  #: name of the snapshot below the frozen host's disk; None: only the base image
    base: str  #: directory name of the base image
    host_key: str  #: public host key of the frozen host, in the format of a .pub file
    options: dict[str, Any]  #: options of the frozen host

    @property
    def directory(self) -> Path:
        """Directory of this snapshot on this machine."""
        return self.lab.state / "snapshots" / self.name

    @property
    def layer(self) -> Path:
        """Overlay layer with the frozen host's writes on the parent snapshot or base image."""
        return self.directory / "upper"

    @property
    def docker(self) -> Path:
        """Complete /var/lib/docker of the frozen host. The overlay layer lacks this directory."""
        return self.directory / "docker"


def read_record(directory: Path) -> HostRecord:
    """Read the record in a host's ``directory``. Raises `LabError` without a record."""
    try:
        return HostRecord(**json.loads((directory / "host.json").read_text()))
    except FileNotFoundError as error:
        raise LabError(
            f"there is no lab host {directory.name}; run `python -m lab status` to list the hosts"
        ) from error


def write_record(directory: Path, record: HostRecord) -> None:
    """Write the record of a complete host into its ``directory``."""
    write_atomically(directory / "host.json", json.dumps(asdict(record), indent=1))


def read_records(lab: Lab) -> dict[str, HostRecord]:
    """Return name → record of all complete hosts of ``lab``."""
    files = sorted((lab.state / "hosts").glob("*/host.json"))
    return {file.parent.name: read_record(file.parent) for file in files}


def read_snapshot(lab: Lab, name: str) -> Snapshot:
    """Return the snapshot ``name`` of ``lab``. Raises `LabError` if the snapshot does not exist."""
    try:
        values = json.loads((lab.state / "snapshots" / name / "snapshot.json").read_text())
    except FileNotFoundError as error:
        raise LabError(f"lab {lab.name} has no snapshot {name}; create it with `lab.snapshots.freeze`") from error
    return Snapshot(lab, **values)


def read_snapshots(lab: Lab) -> dict[str, Snapshot]:
    """Return name → snapshot of all complete snapshots of ``lab``."""
    files = sorted((lab.state / "snapshots").glob("*/snapshot.json"))
    return {file.parent.name: read_snapshot(lab, file.parent.name) for file in files}


def write_snapshot(directory: Path, snapshot: Snapshot) -> None:
    """Write the record of ``snapshot`` into its temporary ``directory``."""
    values = {field.name: getattr(snapshot, field.name) for field in fields(snapshot) if field.name != "lab"}
    write_atomically(directory / "snapshot.json", json.dumps(values, indent=1))


def layers(lab: Lab, record: HostRecord) -> list[Path]:
    """Return the read-only layers below the host's own writes: topmost first, base image last."""
    found, name = [], record.snapshot
    while name is not None:
        snapshot = read_snapshot(lab, name)
        found.append(snapshot.layer)
        name = snapshot.parent
    return [*found, lab.cache / "base" / record.base]


def find_machine(lab: Lab, name: str) -> Machine:
    """Return the host ``name`` of ``lab``. Raises `LabError` if the host does not exist."""
    return Machine(lab, name, read_record(lab.state / "hosts" / name).index)


def find_lab(name: str = DEFAULT_NAME) -> Lab | None:
    """Return the lab ``name``; ``None`` if it does not exist."""
    file = state_directory() / name / "lab.json"
    if not file.exists():
        return None
    return Lab(name, json.loads(file.read_text())["slot"], cache_directory(), state_directory())


def open_lab(name: str = DEFAULT_NAME) -> Lab:
    """Return the lab ``name``. A missing lab is created with the first free network."""
    Lab(name)  # `Lab` raises an error for an invalid name before anything is written
    root = state_directory()
    root.mkdir(parents=True, exist_ok=True)
    with locked("labs"):
        if known := find_lab(name):
            return known
        taken = {json.loads(file.read_text())["slot"] for file in root.glob("*/lab.json")}
        # slot 0 is reserved for the default lab
        first = 0 if name == DEFAULT_NAME else 1
        slot = next((number for number in range(first, SLOTS) if number not in taken), None)
        if slot is None:
            raise LabError(f"all {SLOTS} lab networks are in use; remove a lab with `python -m lab down --name …`")
        lab = Lab(name, slot, cache_directory(), root)
        lab.state.mkdir(exist_ok=True)
        write_atomically(lab.state / "lab.json", json.dumps({"slot": slot}))
        return lab


def write_atomically(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` so that a reader finds either the complete old file or the complete new file."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text)
    temporary.rename(path)


def give_to_user(path: Path) -> None:
    """Make the user who called sudo the owner of ``path``, so that commands without root can read it."""
    if "SUDO_UID" in os.environ:
        os.chown(path, int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"]))
