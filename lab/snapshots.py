"""Snapshots: a host's disk is saved, and any number of hosts start from it at once.

A snapshot is a read-only overlay layer: its hosts share its bytes on disk and in memory. Snapshots stack, since a host
that uses one can be frozen again. They belong to one lab, and `down` removes them with it.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

from hostwright.common.errors import LabError
from lab import network
from lab.config import USER, HostOptions, Machine
from lab.locking import locked
from lab.machine import attach, detach, discard, exec_in, power_off, running, start, wait_for_ssh
from lab.programs import run
from lab.records import (
    HostRecord,
    Snapshot,
    read_record,
    read_records,
    read_snapshots,
    write_record,
    write_snapshot,
)
from lab.rootfs import personalise
from lab.waiting import await_that

SHUTDOWN_TIMEOUT_S = 120.0  # 0.2 s on a quiet machine; longer with containers in Docker, or under load
#: A name is part of mount options, where a colon or a comma means something; the kernel takes one page of them.
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
#: A host's identity, which no other host may have.
_HOST_KEY = ("etc/ssh/ssh_host_ed25519_key", "etc/ssh/ssh_host_ed25519_key.pub")
_IDENTITY = (*_HOST_KEY, "etc/machine-id")


def freeze(machine: Machine, name: str) -> Snapshot:
    """Shut the host down and make a snapshot of its disk, on which the host itself is based from then on; it stays off.

    A host that is off is taken as it is: pull the plug first (`power_off`) to save a disk in the middle of something.
    Raises `LabError` if the name is taken, if the host has a disk of its own, or if it does not shut down.
    """
    with locked(f"lab-{machine.lab.name}"):
        record = read_record(machine.directory)
        _require_freezable(machine, name, record)
        shut_down(machine)
        attach(machine, record)  # nothing is mounted for a host that has been off since the machine booted
        host_key = (machine.merged / _HOST_KEY[1]).read_text()
        detach(machine)
        snapshot = Snapshot(machine.lab, name, record.snapshot, record.base, host_key, record.options)
        unfinished = snapshot.directory.with_name(f".{name}")  # a crash leaves the host as it was
        run(["rm", "-rf", unfinished])
        unfinished.mkdir(parents=True)
        write_snapshot(unfinished, snapshot)
        for part in (snapshot.layer.name, snapshot.docker.name):
            (machine.directory / part).rename(unfinished / part)
        unfinished.rename(snapshot.directory)
        write_record(machine.directory, replace(record, snapshot=name))
        discard(machine)
        return snapshot


def thaw(machine: Machine, snapshot: Snapshot, *, wait: bool = True) -> None:
    """Pull the host's plug, discard all its writes, and boot it from the snapshot; wait until users can log in.

    It keeps its name, address, host key and options, whichever host the snapshot was made of. Cable and network
    namespace are new. Raises `LabError` if the snapshot is of another lab or distribution.
    """
    record = read_record(machine.directory)
    if (snapshot.lab.name, snapshot.base) != (machine.lab.name, record.base):
        raise LabError(
            f"lab host {machine.name} cannot stand on snapshot {snapshot.name} of lab {snapshot.lab.name}, base image "
            f"{snapshot.base}; make a host on it with `lab.fleet.up(…, snapshot=…)`"
        )
    power_off(machine)
    network.unplug(machine)  # rules and bridges made by Docker or by tests live there
    discard(machine)
    record = replace(record, snapshot=snapshot.name)
    write_record(machine.directory, record)
    if record.host_key != snapshot.host_key:
        attach(machine, record)
        settle(machine, HostOptions.from_json(record.options), snapshot)
        restore_identity(machine)
    start(machine)
    if wait:
        wait_for_ssh(machine)


def drop(snapshot: Snapshot) -> None:
    """Delete a snapshot. Raises `LabError` while a host or another snapshot is based on it."""
    with locked(f"lab-{snapshot.lab.name}"):
        users = [name for name, record in read_records(snapshot.lab).items() if record.snapshot == snapshot.name]
        users += [name for name, other in read_snapshots(snapshot.lab).items() if other.parent == snapshot.name]
        if users:
            raise LabError(f"snapshot {snapshot.name} cannot be dropped: {', '.join(users)} stand on it")
        run(["rm", "-rf", snapshot.directory])


def shut_down(machine: Machine, timeout_s: float = SHUTDOWN_TIMEOUT_S) -> None:
    """Have the host, unless it is off, shut itself down, and wait for it. Raises `LabError` on a timeout."""
    if not running(machine):
        return
    exec_in(machine, ["systemctl", "--no-block", "poweroff"])
    runs_on = (
        f"lab host {machine.name} does not shut down within {timeout_s:.0f} s; look at {machine.console}, or pull the "
        "plug first"
    )
    await_that(lambda: not running(machine), timeout_s, lambda: runs_on)


def settle(machine: Machine, options: HostOptions, snapshot: Snapshot | None) -> None:
    """Make the mounted root of ``machine`` its own, with an identity that no other host has."""
    root = machine.merged
    if snapshot:
        for part in (*_HOST_KEY, "etc/docker/key.json"):
            (root / part).unlink(missing_ok=True)
        shutil.rmtree(root / "home" / USER / ".ssh", ignore_errors=True)
        for journal in (root / "var/log/journal").glob("*"):
            shutil.rmtree(journal)
        if options.hardware == HostOptions.from_json(snapshot.options).hardware:
            # A module left in its kernel by an earlier driver has been gone since its first boot.
            options = replace(options, hardware=replace(options.hardware, loaded=None))
    personalise(machine, options)


def keep_identity(machine: Machine) -> str:
    """Keep the host's identity beside its disk, for `thaw`; return its public host key."""
    kept = machine.directory / "identity"
    kept.mkdir(exist_ok=True)
    for part in _IDENTITY:
        shutil.copy2(machine.merged / part, kept / Path(part).name)
    return (kept / Path(_HOST_KEY[1]).name).read_text()


def restore_identity(machine: Machine) -> None:
    """Put back what `keep_identity` kept."""
    for part in _IDENTITY:
        shutil.copy2(machine.directory / "identity" / Path(part).name, machine.merged / part)


def _require_freezable(machine: Machine, name: str, record: HostRecord) -> None:
    if not _NAME.fullmatch(name):
        raise LabError(f"{name!r} cannot name a snapshot: take 1 to 32 small letters, digits and inner hyphens")
    if name in read_snapshots(machine.lab):
        raise LabError(f"lab {machine.lab.name} has a snapshot {name} already; `lab.snapshots.drop` removes it")
    if HostOptions.from_json(record.options).kind == "vm":
        raise LabError(f"lab host {machine.name} is a virtual machine; `lab.vm.disks.save` keeps its disk")
    if HostOptions.from_json(record.options).disk_bytes:
        raise LabError(
            f"lab host {machine.name} has a disk of its own, of which no snapshot can be made; freeze a host without "
            "disk_bytes, and put one with it on top"
        )
