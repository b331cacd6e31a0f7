"""Per-host changes to a base image's root filesystem: name, identity, keys, sudo, vendor repositories."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path

from lab import hardware, limits
from lab.config import USER, HostOptions, Lab, Machine
from lab.image import mask
from lab.network import MTU
from lab.programs import run
from lab.surroundings import pip_conf, resolv_conf
from lab.vm import system

VENDOR_MOUNT = "/opt/hostwright-lab/apt"  #: host directory where the vendor's apt repositories are mounted
HEADERS = f"{VENDOR_MOUNT}/headers"  #: host directory of the apt repository with stand-in kernel headers
_APT_TIMERS = ("apt-daily.timer", "apt-daily-upgrade.timer", "apt-daily.service", "apt-daily-upgrade.service")


def vendor_apt(lab: Lab, profile: str) -> Path:
    """Return the directory on this machine of the vendor's apt repositories for ``profile``."""
    return lab.cache / "vendor" / profile / "apt"


def personalise(machine: Machine, options: HostOptions) -> None:
    """Write the files of a new installation with ``options`` into the mounted root of ``machine``."""
    root = machine.merged
    files = {
        "hostname": f"{machine.name}\n",
        "hosts": f"127.0.0.1 localhost\n{machine.address} {machine.name}\n",
        "machine-id": f"{uuid.uuid4().hex}\n",
        "resolv.conf": resolv_conf(),
        "pip.conf": pip_conf(),
    }
    for name, text in files.items():
        # The files from mmdebstrap have this machine's modes, so new files replace the old ones.
        (root / "etc" / name).unlink(missing_ok=True)
        (root / "etc" / name).write_text(text)
    _ssh(machine)
    _sudo(root, options)
    if not options.apt_timers:
        for unit in _APT_TIMERS:
            mask(root, unit)
    # A virtual machine has real headers and hardware, and needs no stand-ins.
    if options.kind == "vm":
        system.settle(machine, MTU)
        return
    _headers_repository(root, vendor_apt(machine.lab, options.profile))
    limits.install(root)
    hardware.install(root, options.hardware, modules=options.real != "driver")


def _ssh(machine: Machine) -> None:
    root = machine.merged
    key = root / "etc/ssh/ssh_host_ed25519_key"
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"root@{machine.name}", "-f", key])
    home = root / "home" / USER
    owner = home.stat()
    directory = home / ".ssh"
    directory.mkdir(mode=0o700)
    authorized = directory / "authorized_keys"
    shutil.copyfile(machine.lab.private_key.with_suffix(".pub"), authorized)
    authorized.chmod(0o600)
    for path in (directory, authorized):
        os.chown(path, owner.st_uid, owner.st_gid)


def _sudo(root: Path, options: HostOptions) -> None:
    if options.sudo == "password":
        run(["chroot", root, "chpasswd"], stdin=f"{USER}:{options.sudo_password}\n")
    if options.sudo == "none":
        run(["chroot", root, "gpasswd", "--delete", USER, "sudo"])
        return
    rule = root / "etc/sudoers.d/lab"
    rule.write_text(f"{USER} ALL=(ALL:ALL) {'NOPASSWD: ' if options.sudo == 'nopasswd' else ''}ALL\n")
    rule.chmod(0o440)


def _headers_repository(root: Path, vendor: Path) -> None:
    repository = vendor / "headers"
    if not (repository / "Packages").exists():
        return
    (root / "etc/apt/sources.list.d/headers.list").write_text(f"deb [trusted=yes] file:{HEADERS} ./\n")
    lists = root / "var/lib/apt/lists"
    prefix = HEADERS.strip("/").replace("/", "_").join(("_", "_._"))
    for name in ("Packages", "Release"):
        if (repository / name).exists():
            shutil.copyfile(repository / name, lists / f"{prefix}{name}")
