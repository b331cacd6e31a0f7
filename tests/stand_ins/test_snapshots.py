"""Snapshots: a host comes back as it was, many start from one, and nothing of one is seen by another."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.common.errors import LabError
from lab import cgroups, fleet, snapshots
from lab.config import HostOptions, Lab, Machine
from lab.hardware import T4, Hardware
from lab.machine import answers, console, exec_in, power_off, running, start, wait_for_ssh
from lab.programs import run
from lab.records import Snapshot, find_machine, layers, read_record, read_snapshots
from tests.lab.ownlab import own_lab
from tests.stand_ins.test_hosts import boot_id, eventually, leader_parent, ssh, supervisor, traces

SMALL = HostOptions(profile="small")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with own_lab("hwsnap") as opened:
        fleet.up(opened, ["s01"], options=SMALL)
        yield opened
    assert traces(opened) == []


@pytest.fixture(scope="module")
def first(lab: Lab) -> Snapshot:
    """A host with a note, a file of Docker's and a directory that replaces one of the image, frozen."""
    host = find_machine(lab, "s01")
    ssh(host, "echo first > note")
    console(host, "sh", "-euc", "echo layer >/var/lib/docker/file; rm -r /usr/share/bug; mkdir /usr/share/bug")
    return snapshots.freeze(host, "first")


@pytest.fixture
def host(lab: Lab, first: Snapshot) -> Machine:
    """The frozen host, on its snapshot."""
    found = find_machine(lab, "s01")
    snapshots.thaw(found, first)
    return found


@pytest.fixture
def clone(lab: Lab, first: Snapshot) -> Machine:
    """Another host, on the same snapshot."""
    fleet.up(lab, ["c01"], snapshot=first)
    found = find_machine(lab, "c01")
    snapshots.thaw(found, first)
    return found


def identity(machine: Machine) -> tuple[str, ...]:
    """What no two hosts may share."""
    files = ("/etc/hostname", "/etc/machine-id", "/etc/ssh/ssh_host_ed25519_key.pub")
    return tuple(console(machine, "cat", file) for file in files)


def test_a_frozen_host_is_off_and_was_shut_down(lab: Lab) -> None:
    fleet.up(lab, ["f01"], options=SMALL)
    host = find_machine(lab, "f01")
    snapshot = snapshots.freeze(host, "off")
    assert not running(host)
    assert (snapshot.layer / "var/log/wtmp").read_bytes().count(b"shutdown") == 1
    start(host)
    wait_for_ssh(host)
    assert ssh(host, "true").returncode == 0


def test_thaw_brings_back_the_disk_as_it_was(host: Machine, first: Snapshot) -> None:
    before, itself = boot_id(host), identity(host)
    ssh(host, "echo later > note; echo new > other; sync")
    console(host, "sh", "-euc", "echo later >/var/lib/docker/file; rm /etc/hostname; touch /usr/share/bug/x")
    snapshots.thaw(host, first)
    assert boot_id(host) != before
    assert identity(host) == itself
    assert ssh(host, "cat note; ls; ls /usr/share/bug").stdout == "first\nnote\n"
    assert console(host, "cat", "/var/lib/docker/file") == "layer\n"


def test_thaw_gives_a_network_without_what_was_done_to_it(host: Machine, first: Snapshot) -> None:
    console(host, "ip", "route", "delete", "default")
    console(host, "ip", "link", "add", "docker0", "type", "bridge")
    snapshots.thaw(host, first)
    assert "default via" in console(host, "ip", "route")
    assert exec_in(host, ["ip", "link", "show", "docker0"]).returncode == 1


def test_hosts_on_one_snapshot_are_hosts_of_their_own(lab: Lab, host: Machine, first: Snapshot) -> None:
    names = ["c01", "c02", "c03"]
    assert set(fleet.up(lab, names, snapshot=first)) <= set(names)
    clones = [find_machine(lab, name) for name in names]
    for machine in clones:
        assert ssh(machine, "cat note; hostname").stdout == f"first\n{machine.name}\n"  # under the key on record
        assert console(machine, "cat", "/var/lib/docker/file") == "layer\n"
    assert [len(set(column)) for column in zip(*map(identity, [host, *clones]), strict=True)] == [4, 4, 4]
    assert len({machine.address for machine in [host, *clones]}) == 4
    console(clones[0], "sh", "-euc", "echo mine >/home/ops/note; echo mine >/var/lib/docker/file")
    assert ssh(clones[1], "cat note").stdout == "first\n"
    assert console(clones[1], "cat", "/var/lib/docker/file") == "layer\n"
    assert fleet.up(lab, names, snapshot=first) == []
    assert ssh(clones[0], "cat note").stdout == "mine\n"


def test_a_clone_keeps_its_identity_when_it_is_thawed(clone: Machine, first: Snapshot) -> None:
    before = identity(clone)
    ssh(clone, "echo mine > note")
    console(clone, "sh", "-euc", "rm /etc/ssh/ssh_host_*; echo other >/etc/hostname")
    snapshots.thaw(clone, first)
    assert identity(clone) == before
    assert ssh(clone, "cat note").stdout == "first\n"


def test_a_clone_comes_back_with_its_disk_however_it_ended(lab: Lab, clone: Machine) -> None:
    ssh(clone, "echo mine > note")
    power_off(clone)
    start(clone)
    wait_for_ssh(clone)
    assert ssh(clone, "cat note").stdout == "mine\n"
    os.kill(supervisor(clone), signal.SIGKILL)
    eventually(lambda: leader_parent(clone) not in cgroups.processes(clone.cgroup), "nspawn is gone")
    assert fleet.up(lab, [clone.name], options=SMALL) == []
    assert ssh(clone, "cat note; sudo systemctl reboot").stdout == "mine\n"
    eventually(lambda: not answers(clone), "it goes down")
    wait_for_ssh(clone)
    assert ssh(clone, "cat note").stdout == "mine\n"


def test_a_clone_that_cannot_boot_is_made_anew_on_its_snapshot(lab: Lab, clone: Machine) -> None:
    power_off(clone)
    (clone.merged / "usr/lib/systemd/systemd").unlink()
    assert fleet.up(lab, [clone.name], options=SMALL) == [clone.name]
    assert ssh(clone, "cat note").stdout == "first\n"


def test_snapshots_stack_and_every_level_can_be_thawed(lab: Lab, host: Machine, first: Snapshot) -> None:
    before = identity(host)
    ssh(host, "echo second > note")
    second = snapshots.freeze(host, "second")
    fleet.up(lab, ["d01"], snapshot=second)
    upper = find_machine(lab, "d01")
    record = read_record(upper.directory)
    assert [path.parent.name for path in layers(lab, record)[:2]] == ["second", "first"]
    assert ssh(upper, "cat note").stdout == "second\n"
    for snapshot, note in ((second, "second\n"), (first, "first\n"), (second, "second\n")):
        snapshots.thaw(host, snapshot)
        assert (ssh(host, "cat note").stdout, identity(host)) == (note, before)
    itself = identity(upper)
    snapshots.thaw(upper, first)  # of another host, and of another level
    assert (ssh(upper, "cat note").stdout, identity(upper)) == ("first\n", itself)


def test_several_hosts_are_thawed_at_once(lab: Lab, clone: Machine, host: Machine, first: Snapshot) -> None:
    for machine in (clone, host):
        ssh(machine, "echo later > note")
    fleet.thaw(lab, [clone.name, host.name], first)
    assert [ssh(machine, "cat note").stdout for machine in (clone, host)] == ["first\n", "first\n"]


def test_host_with_its_own_disk_starts_from_a_snapshot(lab: Lab, first: Snapshot, clone: Machine) -> None:
    fleet.up(lab, ["disk01"], options=HostOptions(profile="small", disk_bytes=2**28), snapshot=first)
    small = find_machine(lab, "disk01")
    sizes = console(small, "df", "--output=size", "/", "/var/lib/docker", "/home", "/opt", "/usr").split()[1:]
    assert len(set(sizes)) == 1 and int(sizes[0]) < 2**18  # KiB
    assert ssh(small, "cat note; echo later > note").stdout == "first\n"
    snapshots.thaw(clone, first)  # starts while the small one's disk is mounted
    with pytest.raises(LabError, match="disk01 has a disk of its own"):
        snapshots.freeze(small, "never")
    snapshots.thaw(small, first)
    assert ssh(small, "cat note").stdout == "first\n"
    assert running(clone)
    # A view of its mounts kept by another host would hold the old disk, and its space, as long as that host runs.
    eventually(lambda: disks(small) == [str(small.directory / "disk.img")], "the former disk is let go")


def disks(machine: Machine) -> list[str]:
    """Return the files of a host that the machine holds as disks, deleted ones included."""
    files = run(["losetup", "--noheadings", "--output=BACK-FILE"]).splitlines()
    return [file.strip() for file in files if file.startswith(f"{machine.directory}/")]


def test_what_a_former_driver_left_loaded_is_not_loaded_again(lab: Lab) -> None:
    fleet.up(lab, ["l01"], options=HostOptions(profile="small", hardware=Hardware(cards=(T4,), loaded="460.32.03")))
    host = find_machine(lab, "l01")
    assert console(host, "cat", "/sys/module/nvidia/version") == "460.32.03\n"
    snapshot = snapshots.freeze(host, "loaded")
    fleet.up(lab, ["l02"], snapshot=snapshot)
    assert exec_in(find_machine(lab, "l02"), ["ls", "/sys/module/nvidia"]).returncode == 2


def test_a_snapshot_in_use_is_not_dropped(lab: Lab, clone: Machine, first: Snapshot) -> None:
    kept = snapshots.freeze(clone, "kept")
    with pytest.raises(LabError, match="kept cannot be dropped while these use it: c01"):
        snapshots.drop(kept)
    with pytest.raises(LabError, match=r"first cannot be dropped while these use it: .*kept"):
        snapshots.drop(first)
    snapshots.thaw(clone, first)
    snapshots.drop(kept)
    assert "kept" not in read_snapshots(lab)
    assert not kept.directory.exists()


def test_what_cannot_be_is_refused_before_anything_happens(lab: Lab, host: Machine, first: Snapshot) -> None:
    before = boot_id(host)
    with pytest.raises(LabError, match="cannot name a snapshot"):
        snapshots.freeze(host, "a:b")
    with pytest.raises(LabError, match="has a snapshot first already"):
        snapshots.freeze(host, "first")
    with pytest.raises(LabError, match="is of bullseye"):
        fleet.up(lab, ["t01"], options=HostOptions(distro="trixie"), snapshot=first)
    fleet.up(lab, ["bare01"], options=SMALL)
    with pytest.raises(LabError, match="bare01 exists, and its snapshot is none"):
        fleet.up(lab, ["bare01"], snapshot=first)
    assert boot_id(host) == before


def test_killed_freeze_leaves_the_host_and_can_be_repeated(lab: Lab, clone: Machine) -> None:
    unfinished = lab.state / "snapshots" / ".again"
    power_off(clone)
    run(["umount", clone.merged])
    unfinished.mkdir()
    for part in ("upper", "docker"):  # the furthest that it may have come
        shutil.move(clone.directory / part, unfinished / part)
    assert "again" not in read_snapshots(lab)
    start(clone)
    wait_for_ssh(clone)
    power_off(clone)
    assert snapshots.freeze(clone, "again").layer.is_dir()
    assert not unfinished.exists()


def test_down_takes_the_snapshots_away_too() -> None:
    with own_lab("hwsnap2") as scratch:
        fleet.up(scratch, ["x01"], options=SMALL)
        snapshot = snapshots.freeze(find_machine(scratch, "x01"), "one")
        fleet.up(scratch, ["x02"], snapshot=snapshot)
        assert Path(snapshot.layer).is_dir()
        fleet.down(scratch)
    assert traces(scratch) == []
