"""Faults injected into running lab hosts. Each docstring states which effects are real and which are not.

See also `lab.machine.power_off`, `lab.relay` (bad connections) and `lab.halfway` (interrupted dpkg runs).
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from hostwright.apply.jobs.jobs import SHUTDOWN_WAIT_S
from hostwright.common.errors import LabError
from lab import cgroups, clock, network
from lab.config import USER, HostOptions, Machine
from lab.machine import console, exec_in, inside, leader
from lab.programs import run
from lab.records import read_record
from lab.snapshots import restore_identity
from lab.waiting import await_that

CACHE = "var/cache/hostwright/artifacts"  #: path of the directory of received artifacts in a host's root filesystem
PATIENCE_S = 60.0
DAY_S = 86400
_LARGEST_STEP = 2**30
_BLOCK = 4096  # block size of ext4 in bytes
_KEY = "/etc/ssh/ssh_host_ed25519_key"
_LOCKS = ("/var/lib/dpkg/lock-frontend", "/var/lib/apt/lists/lock")

#: program that locks files as apt does, until standard input is closed. Arguments: seconds to hold the locks, seconds
#: to wait for the current holder, and files.
_HOLD = """
import fcntl, select, signal, sys
signal.alarm(int(sys.argv[2]))
files = [open(path, "a") for path in sys.argv[3:]]
for file in files:
    fcntl.lockf(file, fcntl.LOCK_EX)
signal.alarm(0)
print("held", flush=True)
select.select([sys.stdin], [], [], float(sys.argv[1]))
"""


def cut_connections(machine: Machine) -> int:
    """Kill the sshd processes of the login user; return the number of connections.

    As in reality, the TCP connections end, and programs started over them receive the usual signals. New connections
    work.
    """
    sessions = {pid: line for pid, line in _sshd(machine).items() if f": {USER}" in line}
    for pid in sessions:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    # After the login, a connection also has an unprivileged process, which must not count.
    return sum("[priv]" in line for line in sessions.values())


@contextmanager
def silence_network(machine: Machine) -> Iterator[None]:
    """Set the host's link down during the context.

    As in reality, connections stay open without traffic, and the host's programs continue.
    """
    network.cut_network(machine)
    try:
        yield
    finally:
        network.restore_network(machine)


def restart_sshd(machine: Machine) -> None:
    """Restart the host's SSH service as a package upgrade does. Open connections survive."""
    console(machine, "systemctl", "restart", "ssh")


@contextmanager
def freeze_sshd(machine: Machine) -> Iterator[None]:
    """Stop (SIGSTOP) all sshd processes of the host during the context.

    Connections are accepted, but nothing responds, as on a host that swaps heavily. Unlike on such a host, all other
    programs continue normally.
    """
    _signal_sshd(machine, signal.SIGSTOP)
    try:
        yield
    finally:
        _signal_sshd(machine, signal.SIGCONT)


def reboot(machine: Machine) -> None:
    """Reboot the host with systemctl; return after the end of the former systemd. Only the firmware is not real.

    A running step of a Hostwright job has up to ``SHUTDOWN_WAIT_S`` seconds to end.
    """
    _reboot(machine, SHUTDOWN_WAIT_S + PATIENCE_S, "systemctl", "--no-block", "reboot")


def reboot_now(machine: Machine) -> None:
    """Reboot the host at once, like a watchdog; return after the end of the former systemd."""
    _reboot(machine, PATIENCE_S, "systemctl", "reboot", "--force", "--force")


@contextmanager
def fill_disk(machine: Machine, *, free_bytes: int = 65536) -> Iterator[None]:
    """Fill the host's disk except for ``free_bytes`` during the context.

    As in reality, the filesystem is full even for root. The file that fills the disk is outside the host's directory
    tree. Raises `LabError` for a host without a separate disk (`HostOptions.disk_bytes`).
    """
    if not HostOptions.from_json(read_record(machine.directory).options).disk_bytes:
        raise LabError(f"lab host {machine.name} shares the machine's disk, which must not be filled; set disk_bytes")
    filling = machine.directory / "disk" / "filling"
    try:
        with filling.open("wb") as file:
            _take(file.fileno(), free_bytes)
        yield
    finally:
        filling.unlink(missing_ok=True)


@contextmanager
def slow_processors(machine: Machine, processors: float) -> Iterator[None]:
    """Limit the host's CPU time to ``processors`` (0.5: half of one CPU) during the context.

    As in reality, all programs on the host take longer. Unlike a slow CPU, the CPU runs at full speed between pauses.
    """
    period_us = 100_000
    quota_us = int(processors * period_us)
    cgroups.limit(machine.cgroup, {"cpu.cfs_quota_us": str(quota_us), "cpu.max": f"{quota_us} {period_us}"})
    try:
        yield
    finally:
        cgroups.limit(machine.cgroup, {"cpu.cfs_quota_us": "-1", "cpu.max": f"max {period_us}"})


@contextmanager
def slow_disk(machine: Machine, bytes_per_s: int) -> Iterator[None]:
    """Limit the host's disk reads and writes to ``bytes_per_s`` each during the context.

    As with a slow disk, direct reads and writes take longer. With cgroup v1, writes through the page cache are not
    limited.
    """
    device = _whole_disk(machine.directory)

    def allow(v1: int, v2: str) -> None:
        of_v1 = {f"blkio.throttle.{kind}_bps_device": f"{device} {v1}" for kind in ("read", "write")}
        cgroups.limit(machine.cgroup, {**of_v1, "io.max": f"{device} rbps={v2} wbps={v2}"})

    allow(bytes_per_s, str(bytes_per_s))
    try:
        yield
    finally:
        allow(0, "max")


@contextmanager
def slow_network(machine: Machine, bytes_per_s: int) -> Iterator[None]:
    """Limit traffic to the host to ``bytes_per_s`` during the context. Traffic from the host is not limited."""
    rate = ("rate", f"{8 * bytes_per_s}bit", "burst", "256kb", "latency", "50ms")
    run(["tc", "qdisc", "replace", "dev", machine.link, "root", "tbf", *rate])
    try:
        yield
    finally:
        run(["tc", "qdisc", "del", "dev", machine.link, "root"])


@contextmanager
def hold_apt_lock(machine: Machine, seconds: float) -> Iterator[None]:
    """Hold the locks of dpkg and apt on the host, for ``seconds`` or until the context ends.

    As in reality, apt's error names the process. Waits for another holder of the locks; raises `LabError` after
    `PATIENCE_S` seconds.
    """
    program = ["python3", "-c", _HOLD, str(seconds), str(int(PATIENCE_S)), *_LOCKS]
    with subprocess.Popen(inside(machine, program), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin and holder.stdout
        if holder.stdout.readline() != b"held\n":
            raise LabError(f"lab host {machine.name}: another process held the apt locks for {PATIENCE_S:.0f} s")
        yield  # at the end, Popen closes standard input, which ends the holder


@contextmanager
def year_off(machine: Machine, days: int = 365) -> Iterator[None]:
    """Set the host's clock ``days`` ahead (behind, if negative) during the context.

    A preloaded library (`clock.c`) shifts the time of systemd, sshd, sudo and later programs, also in file times.
    Unlike in reality, Docker keeps the real time, because Go programs do not use libc.
    """
    clock.put_off(machine, days * DAY_S)
    try:
        yield
    finally:
        clock.put_right(machine)


def change_host_key(machine: Machine) -> None:
    """Replace the host's SSH host key, as a reinstallation does; `restore_host_key` undoes it."""
    console(machine, "rm", "-f", _KEY, f"{_KEY}.pub")
    console(machine, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", _KEY)
    restart_sshd(machine)


def restore_host_key(machine: Machine) -> None:
    """Restore the SSH host key that `change_host_key` replaced."""
    restore_identity(machine)
    restart_sshd(machine)


def corrupt_cache(machine: Machine, how: Literal["truncate", "flip"], *, pattern: str = "**/*") -> list[str]:
    """Damage cached artifacts: halve each file, or invert a byte in the middle.

    ``pattern`` selects the files; ``**/*.part`` are partial transfers. Returns the damaged files as paths in the cache.
    """
    cache = machine.merged / CACHE
    damaged = [path for path in sorted(cache.glob(pattern)) if path.is_file() and path.stat().st_size]
    for path in damaged:
        middle = path.stat().st_size // 2
        with path.open("r+b") as file:
            if how == "truncate":
                file.truncate(middle)
                continue
            file.seek(middle)
            byte = file.read(1)[0]
            file.seek(middle)
            file.write(bytes((byte ^ 0xFF,)))
    return [str(path.relative_to(cache)) for path in damaged]


def _whole_disk(path: Path) -> str:
    """Return the device number (``253:0``) of the whole disk with the file ``path``, not of the partition."""
    number = path.stat().st_dev
    block = Path("/sys/dev/block", f"{os.major(number)}:{os.minor(number)}")
    parent = block.resolve().parent if (block / "partition").exists() else block
    if not (parent / "dev").exists():
        raise LabError(f"{path} is not on a local disk of this machine, so its transfer rate cannot be limited")
    return (parent / "dev").read_text().strip()


def _sshd(machine: Machine) -> dict[int, str]:
    found = {}
    for pid in sorted(cgroups.processes(machine.cgroup)):
        with contextlib.suppress(OSError):
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if name in ("sshd", "sshd-session", "sshd-auth"):
                found[pid] = line
    return dict(sorted(found.items(), key=lambda item: "[listener]" not in item[1]))


def _signal_sshd(machine: Machine, number: signal.Signals) -> None:
    for pid in _sshd(machine):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _reboot(machine: Machine, patience_s: float, *command: str) -> None:
    former = leader(machine)
    exec_in(machine, command)  # the exit status is undefined, because the host stops

    def gone() -> bool:
        try:
            return leader(machine) != former
        except LabError:
            return True

    await_that(gone, patience_s, lambda: f"lab host {machine.name} did not reboot within {patience_s:.0f} s")


def _take(descriptor: int, free_bytes: int) -> None:
    """Allocate all free space of the filesystem to an open file, and then release ``free_bytes``.

    statvfs(3) cannot replace the allocation, because its count of free space includes space that ext4 reserves.
    """
    size, step = 0, _LARGEST_STEP
    while step >= _BLOCK:
        try:
            os.posix_fallocate(descriptor, size, step)
            size += step
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            os.ftruncate(descriptor, size)  # ftruncate also releases the space that was allocated before the failure
            step //= 2
    os.ftruncate(descriptor, max(0, size - free_bytes))
