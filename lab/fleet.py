"""Operations on many lab hosts at once: up, status, reset, down.

Only one command runs per lab at a time. If a command is killed, the next command completes the work.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from hostwright.common.errors import LabError
from lab import cgroups, inventory, network, snapshots, stack, sysctls, vendor
from lab.bmc import serve
from lab.config import MAX_HOSTS, HostOptions, Lab, Machine
from lab.image import ensure_base, ensure_tools
from lab.locking import locked
from lab.machine import answers, attach, erase, exec_in, memory_bytes, running, start, wait_for_ssh
from lab.mounts import mount_points, unmount_below
from lab.programs import run
from lab.records import (
    HostRecord,
    Snapshot,
    find_machine,
    give_to_user,
    read_record,
    read_records,
    read_snapshot,
    write_record,
)
from lab.support import require_support
from lab.vm.base import ensure_vm_base

_WORKERS = 8  # number of hosts that the lab processes in parallel


@dataclass(frozen=True, slots=True)
class HostStatus:
    """State of one lab host."""

    name: str
    address: str
    state: str  #: ``off``, ``booting``, or the output of ``systemctl is-system-running``
    distro: str
    profile: str
    memory_bytes: int
    labels: tuple[str, ...] = ()  #: labels of the host's repackaged vendor packages


def up(
    lab: Lab,
    names: Iterable[str],
    *,
    options: HostOptions | None = None,
    snapshot: Snapshot | None = None,
    bmc: bool = False,
) -> list[str]:
    """Create and boot the hosts ``names``, wait for SSH, and return the names of new and replaced hosts.

    Hosts that are off are started, and hosts that fail to boot are replaced. New hosts start from ``snapshot``, by
    default with the snapshot's options. With ``bmc``, every host of the lab has a BMC.

    Raises `LabError` if a host exists with other options or another snapshot, because only `reset` may discard a disk.
    """
    options = options or (HostOptions.from_json(snapshot.options) if snapshot else HostOptions())
    if snapshot and options.distro != snapshot.options["distro"]:
        raise LabError(
            f"snapshot {snapshot.name} is of {snapshot.options['distro']}; request hosts of that distribution"
        )
    base = prepare(lab, options)
    with locked(f"lab-{lab.name}"):
        _foundation(lab)
        if bmc or serve.wanted(lab):
            serve.ensure(lab)
        records = read_records(lab)
        machines = _place(lab, names, records)
        _refuse_other_options(records, machines, options)
        _refuse_other_snapshot(records, machines, snapshot)
        fresh = [machine for machine in machines if machine.name not in records]
        fresh += _dead(machine for machine in machines if machine.name in records)
        _each(fresh, lambda machine: _make(machine, base, options, snapshot or _former(machine, records)))
        inventory.publish(lab)
        _each(fresh, wait_for_ssh)
    return [machine.name for machine in fresh]


def reset(lab: Lab, names: Iterable[str], *, options: HostOptions | None = None) -> None:
    """Reinstall the hosts ``names`` with a new disk and a new host key.

    ``options`` are by default the current options of each host.
    """
    machines = [find_machine(lab, name) for name in dict.fromkeys(names)]
    kinds = {machine: options or HostOptions.from_json(read_record(machine.directory).options) for machine in machines}
    bases = {(kind.distro, kind.kind): prepare(lab, kind) for kind in kinds.values()}

    def make(machine: Machine, kind: HostOptions) -> None:
        _make(machine, bases[kind.distro, kind.kind], kind)

    with locked(f"lab-{lab.name}"):
        _foundation(lab)
        _each(machines, lambda machine: make(machine, kinds[machine]))
        inventory.publish(lab)
        _each(machines, wait_for_ssh)


def thaw(lab: Lab, names: Iterable[str], snapshot: Snapshot) -> None:
    """Restart the hosts ``names`` from ``snapshot``, and wait until users can log in."""
    machines = [find_machine(lab, name) for name in dict.fromkeys(names)]
    with locked(f"lab-{lab.name}"):
        _each(machines, lambda machine: snapshots.thaw(machine, snapshot, wait=False))
        _each(machines, wait_for_ssh)


def status(lab: Lab) -> list[HostStatus]:
    """Return the state of every host of the lab."""
    return [_look(Machine(lab, name, record.index), record) for name, record in read_records(lab).items()]


def down(lab: Lab) -> None:
    """Remove the lab, also after a crash."""
    with locked(f"lab-{lab.name}"):
        group = f"hostwright-lab/{lab.name}"
        cgroups.kill(group)
        cgroups.remove(group)
        with locked("machine"):  # another lab may be creating a control group in the same parent
            cgroups.remove_if_empty("hostwright-lab")
        unmount_below(lab.state)
        network.remove_bridge(lab)
        _remove_state(lab)
        sysctls.restore_all(lab.root)


def remove(lab: Lab, names: Iterable[str]) -> None:
    """Remove the hosts ``names`` from the lab permanently."""
    machines = [find_machine(lab, name) for name in dict.fromkeys(names)]
    if not machines:
        return
    with locked(f"lab-{lab.name}"):
        _each(machines, erase)
        for machine in machines:
            serve.forget(lab, machine.name)
        inventory.publish(lab)


def prepare(lab: Lab, options: HostOptions) -> Path:
    """Return the base image for hosts with ``options``; install missing programs on this machine first.

    Raises `LabError` if this machine cannot run a lab.
    """
    require_support(lab.root)
    ensure_tools()
    base = ensure_base(options.distro, lab.cache)
    return ensure_vm_base(base, driver=options.real == "packages") if options.kind == "vm" else base


def supply(lab: Lab, options: HostOptions) -> None:
    """Build the missing vendor files for hosts with ``options``, and write the stack files that refer to them."""
    prepare(lab, options)
    stack.write(vendor.build(options.profile, lab.cache), lab.stack)
    give_to_user(lab.stack)
    if options.real == "packages":
        stack.write_of_debian(lab.stack, options.distro)
        drivers = stack.of_today().values()
        stack.write_repackaged(lab.stack, *vendor.build_repackaged(options.profile, drivers, lab.cache))
    elif options.real:
        stack.write_real(*vendor.build_real(options.real, lab.cache), lab.stack)


def _foundation(lab: Lab) -> None:
    """Create the objects that all hosts of the lab share, and remove incompletely created hosts."""
    (lab.state / "hosts").mkdir(parents=True, exist_ok=True)
    sysctls.raise_all(lab.root)
    network.ensure_bridge(lab)
    inventory.ensure_key(lab)
    finished = read_records(lab)
    for directory in (lab.state / "hosts").iterdir():
        if directory.name not in finished:
            # The host's index was never recorded, so the processes are found by the name of the control group.
            cgroups.kill(f"hostwright-lab/{lab.name}/{directory.name}")
            unmount_below(directory)
            shutil.rmtree(directory)


def _place(lab: Lab, names: Iterable[str], records: dict[str, HostRecord]) -> list[Machine]:
    taken = {record.index for record in records.values()}
    free = (index for index in range(1, MAX_HOSTS + 2) if index not in taken)
    wanted = dict.fromkeys(names)
    return [Machine(lab, name, records[name].index if name in records else next(free)) for name in wanted]


def _refuse_other_options(records: dict[str, HostRecord], machines: list[Machine], options: HostOptions) -> None:
    for machine in machines:
        record = records.get(machine.name)
        # `from_json` adds defaults for options that a record of an earlier version lacks.
        have = (HostOptions.from_json(record.options) if record else options).to_json()
        other = [f"{key}={have[key]}" for key, value in options.to_json().items() if have[key] != value]
        if other:
            raise LabError(
                f"lab host {machine.name} exists with {', '.join(other)}; pass the same options, or reinstall it with "
                f"`python -m lab reset --hosts {machine.name}` and the new options"
            )


def _refuse_other_snapshot(records: dict[str, HostRecord], machines: list[Machine], snapshot: Snapshot | None) -> None:
    for machine in machines:
        record = records.get(machine.name)
        if snapshot and record and record.snapshot != snapshot.name:
            raise LabError(
                f"lab host {machine.name} exists, and its snapshot is {record.snapshot or 'none'}; use "
                "`lab.snapshots.thaw` to change the snapshot"
            )


def _former(machine: Machine, records: dict[str, HostRecord]) -> Snapshot | None:
    record = records.get(machine.name)
    return read_snapshot(machine.lab, record.snapshot) if record and record.snapshot else None


def _make(machine: Machine, base: Path, options: HostOptions, snapshot: Snapshot | None = None) -> None:
    erase(machine)
    machine.directory.mkdir(mode=0o700)
    stands_on = snapshot.name if snapshot else None
    below = snapshot.base if snapshot else base.name
    record = HostRecord(machine.name, machine.index, below, "", options.to_json(), stands_on)
    attach(machine, record)
    snapshots.settle(machine, options, snapshot)
    write_record(machine.directory, replace(record, host_key=snapshots.keep_identity(machine)))
    start(machine)


def _dead(machines: Iterable[Machine]) -> list[Machine]:
    dead = []

    def revive(machine: Machine) -> None:
        try:
            start(machine)
            wait_for_ssh(machine)
        except LabError as error:
            print(f"lab: {error}\nlab: reinstalling {machine.name}", file=sys.stderr)
            dead.append(machine)

    _each(list(machines), revive)
    return dead


def _each(machines: list[Machine], action: Callable[[Machine], None]) -> None:
    with ThreadPoolExecutor(_WORKERS) as pool:
        futures = [pool.submit(action, machine) for machine in machines]
    for future in futures:
        future.result()


def _look(machine: Machine, record: HostRecord) -> HostStatus:
    if not running(machine):
        state = "off"
    elif not answers(machine):
        state = "booting"
    else:
        state = exec_in(machine, ["systemctl", "is-system-running"]).stdout.strip()
    kind = record.options
    address = str(machine.address)
    labels = dict.fromkeys(
        found[1]
        for file in (machine.merged / "usr/share/hostwright").glob("*")
        if file.is_file() and (found := re.search(r"Hostwright lab: (repackaged: .*)\.\n", file.read_text()))
    )
    return HostStatus(
        machine.name, address, state, kind["distro"], kind["profile"], memory_bytes(machine), tuple(labels)
    )


def _remove_state(lab: Lab) -> None:
    """Raise `LabError` if the lab's directory has a mount below it, because the mounted files would be deleted."""
    still = [point for point in mount_points() if point.is_relative_to(lab.state)]
    if still:
        raise LabError(f"{still[0]} is still mounted; stop the programs that use it, then take the lab down again")
    run(["rm", "-rf", lab.state])  # `lab.machine.discard` may be deleting files meanwhile
    lab.inventory.unlink(missing_ok=True)
