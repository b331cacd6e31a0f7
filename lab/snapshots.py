"""Snapshots: the saved disk of a host, from which any number of hosts can start.

A snapshot is a read-only overlay layer that its hosts share. Snapshots are removed with their lab.
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

# seconds to wait for a host's shutdown, which takes 0.2 s on an idle machine
SHUTDOWN_TIMEOUT_S = 120.0
#: pattern of a snapshot's name. The name is part of mount options, which have a limited length.
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
#: paths of files that must differ between hosts
_HOST_KEY = ("etc/ssh/ssh_host_ed25519_key", "etc/ssh/ssh_host_ed25519_key.pub")
_IDENTITY = (*_HOST_KEY, "etc/machine-id")


def freeze(machine: Machine, name: str) -> Snapshot:
    """Shut the host down and make the snapshot ``name`` of its disk. The host stays off, based on the snapshot.

    Raises `LabError` if the name exists, if the host has a separate disk, or if the shutdown times out. To save a disk
    in the middle of a write, call `power_off` first.
    """
    with locked(f"lab-{machine.lab.name}"):
        record = read_record(machine.directory)
        _require_freezable(machine, name, record)
        shut_down(machine)
        attach(machine, record)  # a host that was off since this machine's boot has no mounts
        host_key = (machine.merged / _HOST_KEY[1]).read_text()
        detach(machine)
        snapshot = Snapshot(machine.lab, name, record.snapshot, record.base, host_key, record.options)
        # A crash before the final rename leaves the existing snapshots unchanged.
        unfinished = snapshot.directory.with_name(f".{name}")
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
    """Power the host off, discard its writes, and boot the host from ``snapshot``.

    The host keeps name, address, host key and options. With ``wait``, wait until users can log in. Raises `LabError` if
    the snapshot is of another lab or distribution.
    """
    record = read_record(machine.directory)
    if (snapshot.lab.name, snapshot.base) != (machine.lab.name, record.base):
        raise LabError(
            f"lab host {machine.name} cannot use snapshot {snapshot.name} of lab {snapshot.lab.name} with base image "
            f"{snapshot.base}; create a host on the snapshot with `lab.fleet.up(…, snapshot=…)`"
        )
    power_off(machine)
    network.unplug(machine)  # Docker or tests may have changed the link and the network namespace
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
    """Delete ``snapshot``. Raises `LabError` if a host or another snapshot is based on ``snapshot``."""
    with locked(f"lab-{snapshot.lab.name}"):
        users = [name for name, record in read_records(snapshot.lab).items() if record.snapshot == snapshot.name]
        users += [name for name, other in read_snapshots(snapshot.lab).items() if other.parent == snapshot.name]
        if users:
            raise LabError(f"snapshot {snapshot.name} cannot be dropped while these use it: {', '.join(users)}")
        run(["rm", "-rf", snapshot.directory])


def shut_down(machine: Machine, timeout_s: float = SHUTDOWN_TIMEOUT_S) -> None:
    """Shut the host down with systemctl and wait. Raises `LabError` after ``timeout_s``."""
    if not running(machine):
        return
    exec_in(machine, ["systemctl", "--no-block", "poweroff"])
    runs_on = (
        f"lab host {machine.name} did not shut down within {timeout_s:.0f} s; read {machine.console}, or power it off "
        "first"
    )
    await_that(lambda: not running(machine), timeout_s, lambda: runs_on)


def settle(machine: Machine, options: HostOptions, snapshot: Snapshot | None) -> None:
    """Write name, configuration and identity into the mounted root of ``machine``."""
    root = machine.merged
    if snapshot:
        for part in (*_HOST_KEY, "etc/docker/key.json"):
            (root / part).unlink(missing_ok=True)
        shutil.rmtree(root / "home" / USER / ".ssh", ignore_errors=True)
        for journal in (root / "var/log/journal").glob("*"):
            shutil.rmtree(journal)
        if options.hardware == HostOptions.from_json(snapshot.options).hardware:
            # The module `loaded` was in the kernel only until the frozen host's first boot.
            options = replace(options, hardware=replace(options.hardware, loaded=None))
    personalise(machine, options)


def keep_identity(machine: Machine) -> str:
    """Copy the host's SSH host key and machine ID for `thaw`; return the public host key."""
    kept = machine.directory / "identity"
    kept.mkdir(exist_ok=True)
    for part in _IDENTITY:
        shutil.copy2(machine.merged / part, kept / Path(part).name)
    return (kept / Path(_HOST_KEY[1]).name).read_text()


def restore_identity(machine: Machine) -> None:
    """Restore the SSH host key and machine ID that `keep_identity` copied."""
    for part in _IDENTITY:
        shutil.copy2(machine.directory / "identity" / Path(part).name, machine.merged / part)


def _require_freezable(machine: Machine, name: str, record: HostRecord) -> None:
    if not _NAME.fullmatch(name):
        raise LabError(f"{name!r} cannot name a snapshot; use 1 to 32 lowercase letters, digits and hyphens")
    if name in read_snapshots(machine.lab):
        raise LabError(f"lab {machine.lab.name} has a snapshot {name} already; remove it with `lab.snapshots.drop`")
    if HostOptions.from_json(record.options).kind == "vm":
        raise LabError(f"lab host {machine.name} is a virtual machine; save its disk with `lab.vm.disks.save`")
    if HostOptions.from_json(record.options).disk_bytes:
        raise LabError(
            f"lab host {machine.name} has a disk of its own, which a snapshot cannot contain; freeze a host without "
            "disk_bytes, then create a host with disk_bytes on that snapshot"
        )
