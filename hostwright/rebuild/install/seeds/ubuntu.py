"""Seed of Ubuntu's installer: an autoinstall document as user-data for cloud-init's data source NoCloud.

See Ubuntu's "Autoinstall configuration reference manual". The document's part ``user-data`` is for cloud-init in the
installed system: cloud-init writes the host key before sshd starts.
"""

from __future__ import annotations

import hashlib
from typing import Any

from hostwright.common.quoting import sh
from hostwright.common.templates import render
from hostwright.rebuild.install.seeds import TEMPLATES
from hostwright.rebuild.install.seeds.escaping import to_yaml
from hostwright.rebuild.install.seeds.settings import Disk, Install, Network
from hostwright.transport.identity.keys import KeyPair

NO_PASSWORD = "*"  # noqa: S105 (no password has this hash; unlike `!`, it does not make sshd refuse keys)
#: prefixes of packages that unattended-upgrades skips until the first provisioning of the host
KEPT_BACK = ("linux-", "nvidia-", "libnvidia-")
UNATTENDED = "/etc/apt/apt.conf.d/52hostwright"
SUDOERS = "/etc/sudoers.d/90-hostwright"
GRUB = "/etc/default/grub.d/90-hostwright.cfg"
#: command that makes all copies of the seed private, because older installers leave the host key world-readable
_LEFT_BEHIND = "chmod -Rf go= /etc/cloud/cloud.cfg.d/99-installer.cfg /var/log/installer || true"
#: command that extends / to the whole volume group, because older installers limit / to 200 GiB
_WHOLE_GROUP = 'lvextend --resizefs --extents +100%FREE "$(findmnt -n -o SOURCE /target)" || true'
_ESP = "1G"  #: size of the EFI system partition. For large disks, Ubuntu's installer would choose the same size.


def files(install: Install, *, keys: KeyPair) -> dict[str, str]:
    """Return name → content of the files that cloud-init fetches. ``keys`` is the new host key."""
    # cloud-init uses the instance ID as a directory name, so each installation needs another ID.
    instance = hashlib.sha256(keys.public.blob).hexdigest()[:16]
    meta = {"instance-id": f"hostwright-{instance}", "local-hostname": install.hostname}
    values: dict[str, Any] = {name: to_yaml(value) for name, value in _values(install, keys).items()}
    values |= _optional(install)
    return {
        "user-data": render("ubuntu/user-data.j2", [TEMPLATES], **values),
        "meta-data": f"{to_yaml(meta)}\n",
        "vendor-data": "#cloud-config\n{}\n",
    }


def _values(install: Install, keys: KeyPair) -> dict[str, Any]:
    hashed = install.password_hash
    return {
        "hostname": install.hostname,
        "user": install.user,
        "password": hashed.reveal() if hashed else NO_PASSWORD,
        "ssh_keys": list(install.ssh_keys),
        "locale": install.locale,
        "keyboard": install.keyboard,
        "timezone": install.timezone,
        "storage": storage(install),
        "packages": list(install.packages),
        "late_commands": late_commands(install),
        "private": keys.private.reveal(),
        "public": f"{keys.public.line}\n",
        "boot_commands": [_LEFT_BEHIND],
    }


def _optional(install: Install) -> dict[str, str]:
    given = {
        "network": network(install.network),
        "proxy": install.proxy,
        "apt": {"primary": [{"arches": ["default"], "uri": install.mirror}], "geoip": False} if install.mirror else "",
    }
    return {name: to_yaml(value) if value else "" for name, value in given.items()}


def network(wanted: Network) -> dict[str, Any]:
    """Return ``wanted`` as settings for netplan; empty for the installer's default, DHCP on every wired interface."""
    if not (wanted.interface or wanted.mac):
        return {}
    interface: dict[str, Any] = {"match": {"macaddress": wanted.mac}} if wanted.mac else {}
    if wanted.fixed:
        interface |= {"dhcp4": False, "addresses": [wanted.address]}
    else:
        interface["dhcp4"] = True
    if wanted.gateway:
        # The netplan version of Ubuntu 20.04 does not support the destination ``default``.
        anywhere = "::/0" if wanted.ip.version == 6 else "0.0.0.0/0"
        interface["routes"] = [{"to": anywhere, "via": wanted.gateway}]
    if wanted.nameservers:
        interface["nameservers"] = {"addresses": list(wanted.nameservers)}
    return {"version": 2, "ethernets": {wanted.interface or "primary": interface}}


def storage(install: Install) -> dict[str, Any]:
    """Return the section ``storage`` of the autoinstall document."""
    if install.layout == "raid1" and install.second_disk is not None:
        return {"config": _mirrored(install.disk, install.second_disk)}
    layout: dict[str, Any] = {"name": install.layout, "match": install.disk.match}
    if install.layout == "lvm":
        # By default, the installer makes / too small for CUDA and container images, even on a large disk.
        layout["sizing-policy"] = "all"
    return {"layout": layout}


def _mirrored(*disks: Disk) -> list[dict[str, Any]]:
    actions: list[dict[str, Any]] = []
    for number, disk in enumerate(disks):
        name = f"disk{number}"
        own = {"preserve": False, "device": name, "wipe": "superblock"}
        whole = {"ptable": "gpt", "wipe": "superblock-recursive", "preserve": False, "match": disk.match}
        actions += [
            {"type": "disk", "id": name, **whole},
            {"type": "partition", "id": f"{name}-efi", "size": _ESP, "flag": "boot", "grub_device": True, **own},
            {"type": "partition", "id": f"{name}-raid", "size": -1, **own},
            {"type": "format", "id": f"{name}-efi-format", "fstype": "fat32", "volume": f"{name}-efi"},
        ]
    parts = [f"disk{number}-raid" for number in range(len(disks))]
    return [
        *actions,
        {"type": "raid", "id": "md0", "name": "md0", "raidlevel": "raid1", "devices": parts, "preserve": False},
        {"type": "format", "id": "root-format", "fstype": "ext4", "volume": "md0"},
        {"type": "mount", "id": "root-mount", "path": "/", "device": "root-format"},
        {"type": "mount", "id": "efi-mount", "path": "/boot/efi", "device": "disk0-efi-format"},
    ]


def late_commands(install: Install) -> list[str]:
    """Return the shell commands for the end of the installation, with the site's own commands last."""
    commands = [
        _write(SUDOERS, f"{install.user} ALL=(ALL) NOPASSWD: ALL\n", mode="0440"),
        _write(UNATTENDED, render("base/unattended.conf.j2", never=KEPT_BACK), mode="0644"),
    ]
    if install.layout == "lvm":
        commands.append(_WHOLE_GROUP)
    if install.kernel_arguments:
        commands += [_write(GRUB, grub(install), mode="0644"), "curtin in-target --target=/target -- update-grub"]
    return [*commands, *install.late_commands]


def grub(install: Install) -> str:
    """Return the line for GRUB's settings with the kernel arguments of the new system."""
    return f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {" ".join(install.kernel_arguments)}"\n'


def _write(path: str, text: str, *, mode: str) -> str:
    target = f"/target{path}"
    folder = target.rpartition("/")[0]
    return sh("mkdir -p %s && printf %%s %s > %s && chmod %s %s", folder, text, target, mode, target)


def command_line(install: Install, url: str) -> str:
    """Return the installer's kernel arguments: the URL of the seed, and the network settings unless DHCP is used."""
    return " ".join(["autoinstall", f"ds=nocloud-net;s={url}/", *_kernel_network(install), *install.kernel_arguments])


def _kernel_network(install: Install) -> list[str]:
    wanted = install.network
    boot_interface = [f"BOOTIF=01-{wanted.mac.replace(':', '-')}"] if wanted.mac else []
    if not wanted.fixed or wanted.ip.version == 6:
        return boot_interface
    servers = [server for server in wanted.nameservers if ":" not in server][:2]
    parts = [str(wanted.ip.ip), "", wanted.gateway, str(wanted.ip.netmask), install.hostname, wanted.interface, "none"]
    return [f"ip={':'.join([*parts, *servers])}", *boot_interface]
