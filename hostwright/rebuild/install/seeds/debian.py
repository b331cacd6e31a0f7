"""Debian's unattended installation: a preseed file, and a script that the installer runs at its end.

The names are those of the Debian Installation Guide, appendix B. The network is up before the preseed file can be
fetched, so what concerns it is on the kernel's command line, and the script writes it into the new system once more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from hostwright.common.quoting import sh, words
from hostwright.common.templates import render
from hostwright.rebuild.install.seeds import TEMPLATES
from hostwright.rebuild.install.seeds.escaping import preseed
from hostwright.rebuild.install.seeds.settings import Install
from hostwright.rebuild.install.seeds.ubuntu import KEPT_BACK, SUDOERS, UNATTENDED

NO_PASSWORD = "!"  # noqa: S105 (the guide: an account whose password is `!` is disabled; keys still log in)
#: What the installer fetches at its end, besides the preseed file; the script is the last.
FETCHED = ("ssh_host_ed25519_key", "ssh_host_ed25519_key.pub", "authorized_keys", "late.sh")


def files(install: Install, *, host: str, url: str) -> dict[str, str]:
    """The preseed file, the script and the user's keys; the host key's files lie beside them."""
    beside = {"late.sh": _script(install), "authorized_keys": "".join(f"{key}\n" for key in install.ssh_keys)}
    return {"preseed.cfg": _preseed_file(install, host, url, beside), **beside}


def checksum(files: Mapping[str, str]) -> str:
    """The argument for the installer's kernel with which it takes no other preseed file: the same until a setting
    changes, for nothing of one installation is in that file. MD5 is all that the installer knows for this; to make
    another file of a given sum is not known to be possible.
    """
    return f"preseed/url/checksum={hashlib.md5(files['preseed.cfg'].encode(), usedforsecurity=False).hexdigest()}"


def _preseed_file(install: Install, host: str, url: str, beside: Mapping[str, str]) -> str:
    mirror = urlsplit(install.mirror)
    hashed = install.password_hash
    values = {
        "locale": install.locale,
        "country": install.locale.partition("_")[2][:2],
        "keyboard": install.keyboard,
        "hostname": install.hostname,
        "protocol": mirror.scheme or "http",
        "mirror_host": mirror.netloc,
        "mirror_directory": mirror.path.rstrip("/") or "/",
        "proxy": install.proxy,
        "user": install.user,
        "password": hashed.reveal() if hashed else NO_PASSWORD,
        "timezone": install.timezone,
        "find_disk": _find_disk(install),
        "method": "lvm" if install.layout == "lvm" else "regular",
        "packages": " ".join(["openssh-server", "sudo", *install.packages]),
        "kernel_arguments": " ".join(install.kernel_arguments),
        "late_command": _late_command(install, url, beside),
    }
    lines: dict[str, Any] = {name: preseed(text, f"{host}: {name}") for name, text in values.items()}
    return render("debian/preseed.cfg.j2", [TEMPLATES], **lines)


def _find_disk(install: Install) -> str:
    """A command for just before partitioning: names below /dev/disk are links, and partman wants the disk itself."""
    return sh(
        'disk=$(readlink -f %s) && debconf-set partman-auto/disk "$disk" && debconf-set grub-installer/bootdev "$disk"',
        install.disk.path,
    )


def _late_command(install: Install, url: str, beside: Mapping[str, str]) -> str:
    """What the installer runs at its end: fetch what lies beside the preseed file, give the user sudo, run the script.

    Whoever changed what it runs, or who may log in, on its way is found out. A host key that was changed is not the one
    that we wait for. The command stays on one line and holds no backslash, for a preseed file gives both a meaning of
    its own.
    """
    fetch = sh('wget -q -O "$name" %s/"$name" || exit 1', url)
    rule = sh("echo %s > %s && chmod 440 %s", f"{install.user} ALL=(ALL) NOPASSWD: ALL", *[f"/target{SUDOERS}"] * 2)
    sums = [(f"{hashlib.sha256(text.encode()).hexdigest()}  -", name) for name, text in beside.items()]
    checks = " && ".join(sh('[ "$(sha256sum <%s)" = %s ]', name, expected) for expected, name in sums)
    parts = ["umask 077; cd /tmp && for name in", words(FETCHED), "; do", fetch, "; done;"]
    parts += [checks, "&&", rule, "&& sh late.sh"]
    return " ".join(parts)


def _script(install: Install) -> str:
    network = install.network
    quoted = {
        "user": install.user,
        "hostname": install.hostname,
        "unattended": UNATTENDED,
        "never": render("base/unattended.conf.j2", never=KEPT_BACK),
        "interface": network.interface,
        "mac": network.mac,
        "network": _interfaces(install) if network.fixed else "",
        "resolv": "".join(f"nameserver {server}\n" for server in network.nameservers),
    }
    commands = [sh("sh -c %s", command) for command in install.late_commands]
    words_of_shell: dict[str, Any] = {name: sh("%s", text) for name, text in quoted.items()}
    return render("debian/late.sh.j2", [TEMPLATES], commands=commands, **words_of_shell)


def _interfaces(install: Install) -> str:
    """The lines of interfaces(5) that stand below ``iface NAME inet static``."""
    return f"    address {install.network.address}\n    gateway {install.network.gateway}\n"


def command_line(install: Install, url: str) -> str:
    """What the installer's kernel is given: where the seed is, and the network, which comes before the seed."""
    wanted = install.network
    arguments = ["auto=true", "priority=critical", f"url={url}/preseed.cfg", f"hostname={install.hostname}"]
    arguments += [f"interface={wanted.interface or 'auto'}"]
    arguments += [f"BOOTIF=01-{wanted.mac.replace(':', '-')}"] if wanted.mac else []
    if wanted.fixed:
        arguments += [
            "netcfg/disable_autoconfig=true",
            f"netcfg/get_ipaddress={wanted.ip.ip}",
            f"netcfg/get_netmask={wanted.ip.netmask}",
            f"netcfg/get_gateway={wanted.gateway}",
            f"netcfg/get_nameservers={wanted.nameservers[0]}",  # a space in a kernel argument is not safe there
            "netcfg/confirm_static=true",
        ]
    return " ".join([*arguments, *install.kernel_arguments])
