"""Installation of a lab host: the lab's base image on a new disk, with a seed (settings) applied."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hostwright.common.errors import LabError
from lab import network, snapshots
from lab.bmc.seeds import Seed, public_line
from lab.config import USER, HostOptions, Machine
from lab.machine import attach, discard, power_off, start
from lab.programs import attempt, run
from lab.records import layers, read_record, write_record

_TOOLS = Path(__file__).with_name("tools")
#: message of systemd-nspawn at the end of a command if /run is not a tmpfs
_NSPAWNS_OWN = "Attempted to remove disk file system"
_MOST_LINES = 40  # maximum number of console lines for one command of a seed


def install(machine: Machine, seed: Seed, say: Callable[[str], None]) -> None:
    """Erase the host's disk, install the host as ``seed`` specifies, and boot it. The caller holds the lab's lock.

    ``say`` prints to the host's console. The new host key is not added to known_hosts, because the user decides about
    trust. Raises `LabError` if a command of the seed fails. The host then stays off.
    """
    record = read_record(machine.directory)
    power_off(machine)
    network.unplug(machine)  # the old system may have changed the link and the network namespace
    network.plug(machine)
    discard(machine)
    record = replace(record, snapshot=None, seeded=True)
    attach(machine, record)
    snapshots.settle(machine, HostOptions.from_json(record.options), None)
    follow(machine.merged, seed, str(machine.address))
    for command in seed.late_commands:
        _run_late(machine, layers(machine.lab, record)[-1], command, say)
    write_record(machine.directory, replace(record, host_key=snapshots.keep_identity(machine)))
    say("the new system boots")
    # The next boot starts a new console log, so a copy keeps the output of the installer.
    shutil.copyfile(machine.console, machine.directory / "installer.log")
    start(machine)


def follow(root: Path, seed: Seed, address: str) -> None:
    """Apply ``seed`` to the new root filesystem ``root``, and remove the access of the lab's user."""
    (root / "etc/hostname").write_text(f"{seed.hostname}\n")
    (root / "etc/hosts").write_text(f"127.0.0.1 localhost\n{address} {seed.hostname}\n")
    if seed.host_key:
        key = root / "etc/ssh/ssh_host_ed25519_key"
        key.write_text(seed.host_key.reveal())  # `write_text` keeps the mode of an existing file
        key.with_suffix(".pub").write_text(f"{public_line(seed.host_key)} root@{seed.hostname}\n")
    shutil.rmtree(root / "home" / USER / ".ssh", ignore_errors=True)
    (root / "etc/sudoers.d/lab").unlink(missing_ok=True)
    _login(root, seed)


def _login(root: Path, seed: Seed) -> None:
    if attempt(["chroot", root, "getent", "passwd", seed.user]).returncode != 0:
        run(["chroot", root, "useradd", "--create-home", "--shell", "/bin/bash", seed.user])
    run(["chroot", root, "usermod", "--append", "--groups", "sudo", seed.user])
    password = seed.password_hash.reveal() if seed.password_hash else "!"  # "!" locks the password (shadow(5))
    run(["chroot", root, "chpasswd", "--encrypted"], stdin=f"{seed.user}:{password}\n")
    if seed.authorized_keys:
        home = Path(run(["chroot", root, "getent", "passwd", seed.user]).split(":")[5])
        _authorize(root / home.relative_to("/"), seed.authorized_keys)


def _authorize(home: Path, authorized: tuple[str, ...]) -> None:
    owner, directory = home.stat(), home / ".ssh"
    directory.mkdir(mode=0o700)
    keys = directory / "authorized_keys"
    keys.write_text("".join(f"{key}\n" for key in authorized))
    keys.chmod(0o600)
    for path in (directory, keys):
        os.chown(path, owner.st_uid, owner.st_gid)


def _run_late(machine: Machine, base: Path, command: str, say: Callable[[str], None]) -> None:
    """Run ``command`` in a separate container with the new system at /target, as an installer does.

    Writes outside /target are lost. Small programs replace ``wget`` and ``curtin``.
    """
    done = attempt(
        [
            # The lock of systemd-nspawn would fail, because several hosts use this directory tree at the same time.
            *("env", "SYSTEMD_NSPAWN_LOCK=0"),
            *("systemd-nspawn", "--quiet", "--settings=no", "--register=no", "--keep-unit", "--volatile=overlay"),
            *(f"--directory={base}", f"--machine={machine.lab.name}-{machine.name}-installer"),
            *(f"--network-namespace-path={machine.netns}", "--resolv-conf=off", "--timezone=off", "--link-journal=no"),
            *(f"--bind={machine.merged}:/target", "--pipe"),
            *(f"--bind-ro={tool}:/usr/local/bin/{tool.name}" for tool in sorted(_TOOLS.iterdir())),
            *("sh", "-c", command),
        ]
    )
    kept = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith(_NSPAWNS_OWN)]
    for line in kept[-_MOST_LINES:]:
        say(f"late command: {line}")
    if done.returncode != 0:
        raise LabError(f"a late command of the seed failed with exit status {done.returncode}")
