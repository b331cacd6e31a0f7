"""One lab host: an overlay on a base image, booted by systemd-nspawn under a supervisor that survives this process.

The state of a host is read from the kernel (control group, mounts, links).
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hostwright.common.errors import LabError
from hostwright.common.quoting import sh_file, words
from lab import cgroups, limits, network
from lab.config import CHECKOUT, USER, Distro, HostOptions, Machine
from lab.locking import locked
from lab.mounts import mount_disk, mount_overlay, mounted, unmount_below
from lab.programs import attend, run
from lab.records import HostRecord, layers, read_record, read_snapshot
from lab.rootfs import VENDOR_MOUNT, vendor_apt
from lab.vm import disks, qemu
from lab.waiting import await_that

BOOT_TIMEOUT_S = 180.0  # seconds to wait for a host's boot, which takes 0.3 s on an idle machine
# seconds to wait for the boot of a virtual machine, which takes a minute without KVM
VM_BOOT_TIMEOUT_S = 900.0
_LOOK_S = 0.05  # seconds between two checks of a boot, each of which opens a connection
_CLEAN = ("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8")

#: shell code that enters the host's control groups, and then detaches the process of the host
_LAUNCH = """
count=$1; shift
while [ "$count" -gt 0 ]; do echo $$ >"$1" || exit; shift; count=$((count - 1)); done
exec setsid --fork "$@"
"""


def running(machine: Machine) -> bool:
    """Return whether the host is powered on."""
    return bool(cgroups.processes(machine.cgroup))


def start(machine: Machine) -> None:
    """Start a host that is off, and set the host's link up. Does not wait (see `wait_for_ssh`)."""
    if running(machine) and network.plugged(machine) and not _orphaned(machine):
        network.restore_network(machine)
        return
    # A running host without network link or supervisor cannot reboot, so the host is started anew.
    power_off(machine)
    record = read_record(machine.directory)
    options = HostOptions.from_json(record.options)
    command = _virtual(machine, record) if options.kind == "vm" else _contained(machine, record)
    with locked("machine"):
        entries = [str(entry) for entry in cgroups.create(machine.cgroup)]
    launch = ["sh", "-c", _LAUNCH, "hostwright-lab", str(len(entries)), *entries]
    with machine.console.open("wb") as console:
        done = subprocess.run(
            [*launch, *command], stdin=subprocess.DEVNULL, stdout=console, stderr=console, cwd="/", check=False
        )
    if done.returncode != 0:
        raise LabError(f"lab host {machine.name}: cannot enter its control group: {_tail(machine.console)}")


def _contained(machine: Machine, record: HostRecord) -> list[str]:
    attach(machine, record)
    network.plug(machine)
    # With "slave", an unmount on this machine also takes effect in the host.
    apart = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", sh_file(__file__, "sh/supervise.sh")]
    places = ["hostwright-lab", str(machine.lab.root), str(machine.directory)]
    return [*apart, *places, *_nspawn(machine, HostOptions.from_json(record.options))]


def _virtual(machine: Machine, record: HostRecord) -> list[str]:
    if not qemu.disk(machine).exists():
        attach(machine, record)
        disks.make(machine, HostOptions.from_json(record.options))
        detach(machine)
    network.plug_tap(machine)
    run_card = ["env", f"PYTHONPATH={CHECKOUT}", sys.executable, "-B", "-m", "lab.vm.card"]
    return [*run_card, *qemu.command(machine, qemu.here())]


def _is_virtual(machine: Machine) -> bool:
    return HostOptions.from_json(read_record(machine.directory).options).kind == "vm"


def attach(machine: Machine, record: HostRecord) -> None:
    """Mount the host's root filesystem, an overlay on its base image, if not yet mounted."""
    if mounted(machine.merged):
        return
    options = HostOptions.from_json(record.options)
    machine.merged.mkdir(exist_ok=True)
    disk = _disk(machine, options)
    disk.mkdir(exist_ok=True)
    if options.disk_bytes and not mounted(disk):
        mount_disk(machine.directory / "disk.img", options.disk_bytes, disk)
    for name in ("upper", "work"):
        (disk / name).mkdir(exist_ok=True)
    _give_docker(machine, record, disk / "docker")
    *between, base = layers(machine.lab, record)
    mount_overlay(base, disk / "upper", disk / "work", machine.merged, between=between)


def _give_docker(machine: Machine, record: HostRecord, directory: Path) -> None:
    """Put /var/lib/docker outside the host's overlay, because Docker does not work on an overlay.

    The directory is empty, or a copy from the host's snapshot.
    """
    if directory.exists():
        return
    if record.snapshot is None:
        directory.mkdir()
        return
    copy = directory.with_name(".docker.new")
    run(["rm", "-rf", copy])
    run(["cp", "-a", "--reflink=auto", read_snapshot(machine.lab, record.snapshot).docker, copy])
    copy.rename(directory)


def detach(machine: Machine) -> None:
    """Unmount the root filesystem of a host that is off. Raises `LabError` if a process still uses the filesystem."""
    for point in (machine.merged, machine.directory / "disk"):
        if mounted(point):
            run(["umount", point])


def discard(machine: Machine) -> None:
    """Discard everything that the host wrote since its installation or snapshot. The host must be off."""
    detach(machine)
    trash = Path(tempfile.mkdtemp(prefix="trash-", dir=machine.directory))
    for name in ("upper", "work", "docker", "disk.img"):
        if (machine.directory / name).exists():
            (machine.directory / name).rename(trash / name)
    # The deletion takes seconds, so rm runs in the background.
    run(["setsid", "--fork", "rm", "-rf", *machine.directory.glob("trash-*")])


def _disk(machine: Machine, options: HostOptions) -> Path:
    return machine.directory / "disk" if options.disk_bytes else machine.directory


def power_off(machine: Machine) -> None:
    """Kill all processes of the host with SIGKILL, as in a power failure. The disk stays unchanged."""
    cgroups.kill(machine.cgroup)
    cgroups.remove(machine.cgroup)


def erase(machine: Machine) -> None:
    """Power the host off and remove its network, mounts and disk."""
    power_off(machine)
    network.unplug(machine)
    unmount_below(machine.directory)
    run(["rm", "-rf", machine.directory])  # `discard` may be deleting files meanwhile


def wait_for_ssh(machine: Machine, timeout_s: float | None = None) -> None:
    """Wait until users can log in over SSH. Raises `LabError` if the host stops first, or after ``timeout_s``."""

    def up() -> bool:
        if answers(machine) and admits(machine):
            return True
        if not running(machine):
            text = f"last lines of {machine.console}:\n{_tail(machine.console)}"
            raise LabError(f"lab host {machine.name} stopped while booting; {text}")
        return False

    if timeout_s is None:
        timeout_s = VM_BOOT_TIMEOUT_S if _is_virtual(machine) else BOOT_TIMEOUT_S
    silent = f"no SSH login on {machine.address}:22 after {timeout_s:.0f} s"
    await_that(up, timeout_s, lambda: f"lab host {machine.name}: {silent}; read {machine.console}", look_s=_LOOK_S)


def answers(machine: Machine) -> bool:
    """Return whether an SSH server responds at the host's address."""
    try:
        with socket.create_connection((str(machine.address), 22), timeout=2.0) as connection:
            return connection.recv(8).startswith(b"SSH-2.0")
    except OSError:
        return False


def admits(machine: Machine) -> bool:
    """Return whether users can log in. A running sshd may still reject them (pam_nologin)."""
    if _is_virtual(machine):
        return exec_in(machine, ["true"]).returncode == 0
    found = _leader(cgroups.processes(machine.cgroup))
    return found is not None and not Path(f"/proc/{found[0]}/root/run/nologin").exists()


def memory_bytes(machine: Machine) -> int:
    """Return the bytes of memory that the host uses, including the page cache; 0 if the host is off."""
    return cgroups.memory_bytes(machine.cgroup)


def exec_in(machine: Machine, argv: Sequence[str], *, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the program ``argv`` as root in the host. Raises `LabError` if the host is off.

    A virtual machine needs network and sshd for this, a container does not.
    """
    return attend(inside(machine, argv), stdin=stdin)


def inside(machine: Machine, argv: Sequence[str]) -> list[str]:
    """Return the command that runs ``argv`` as root in the host. Raises `LabError` if the host is off.

    For a virtual machine, the command is ssh with sudo.
    """
    if _is_virtual(machine):
        options = ("BatchMode=yes", "ConnectTimeout=10", f"UserKnownHostsFile={machine.lab.known_hosts}")
        ssh = ["ssh", "-i", str(machine.lab.private_key), *(f"-o{option}" for option in options)]
        return [*ssh, f"{USER}@{machine.address}", words(["sudo", "-n", "env", "-i", *_CLEAN, *argv])]
    enter = ["nsenter", f"--target={leader(machine)}", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup"]
    return [*enter, "--root", "--wd", "env", "-i", *_CLEAN, *argv]


def console(machine: Machine, *argv: str) -> str:
    """Run ``argv`` as root in the host; return its output. Raises `LabError` if the program fails."""
    done = exec_in(machine, argv)
    if done.returncode != 0:
        words, output = " ".join(argv)[:300], (done.stderr or done.stdout)[-500:]
        raise LabError(f"lab host {machine.name}: `{words}` ended with status {done.returncode}: {output}")
    return done.stdout


def why_no_limits(machine: Machine) -> str:
    """Return the reason why Docker on the running host cannot limit containers; empty if it can (see `lab.limits`)."""
    return limits.why_not(exec_in(machine, ["cat", limits.NOTE]).stdout)


def leader(machine: Machine) -> int:
    """Return the process id of the host's PID 1 on this machine. Raises `LabError` if the host is off."""
    found = _leader(cgroups.processes(machine.cgroup))
    if found is None:
        raise LabError(f"lab host {machine.name} is off; run `python -m lab up --hosts {machine.name}`")
    return found[0]


def _orphaned(machine: Machine) -> bool:
    processes = cgroups.processes(machine.cgroup)
    found = _leader(processes)
    return found is not None and found[1] not in processes


def _leader(processes: set[int]) -> tuple[int, int] | None:
    for pid in processes:
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            continue  # the process has ended
        status = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
        # A process in a container inside the host has more levels of PID namespaces.
        if len(status["NSpid"]) == 2 and status["NSpid"][1] == "1":
            return pid, int(status["PPid"][0])
    return None


def _nspawn(machine: Machine, options: HostOptions) -> list[str]:
    vendor = vendor_apt(machine.lab, options.profile)
    vendor.mkdir(parents=True, exist_ok=True)
    return [
        # With this variable, /tmp stays on disk, as in a Debian installation.
        *("env", "SYSTEMD_NSPAWN_TMPFS_TMP=0", *_hierarchy(options.distro)),
        *("systemd-nspawn", "--quiet", "--boot", "--settings=no"),
        *("--keep-unit", "--register=no", f"--directory={machine.merged}"),
        *(f"--machine={machine.lab.name}-{machine.name}", f"--hostname={machine.name}"),
        *(f"--network-namespace-path={machine.netns}", "--resolv-conf=off", "--timezone=off", "--link-journal=no"),
        *("--console=pipe", "--kill-signal=SIGRTMIN+3"),
        # dockerd needs these permissions for the bridge, keyrings and the device filter.
        *("--capability=CAP_NET_ADMIN", "--system-call-filter=@keyring", "--system-call-filter=bpf"),
        f"--bind={_disk(machine, options) / 'docker'}:/var/lib/docker",
        f"--bind-ro={vendor}:{VENDOR_MOUNT}",
    ]


def _hierarchy(distro: Distro) -> tuple[str, ...]:
    """Return the setting that selects the host's cgroup hierarchy for systemd-nspawn, or nothing.

    By default, hosts use this machine's hierarchy. Debian 13 (trixie) boots only with cgroup v2.
    """
    return ("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1",) if distro == "trixie" else ()


def _tail(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").strip().splitlines()[-8:])
