"""Seed of Debian's installer: a preseed file, and a script that the installer runs at the end.

Settings are named as in the Debian Installation Guide, appendix B. Kernel arguments configure the network, because the
installer fetches the preseed file over the network. The script writes the network settings to the new system.
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

NO_PASSWORD = "!"  # noqa: S105 (according to the guide, `!` disables the password; keys still work)
#: names of the files that Debian's installer fetches last, in this order
FETCHED = ("ssh_host_ed25519_key", "ssh_host_ed25519_key.pub", "authorized_keys", "late.sh")


def files(install: Install, *, host: str, url: str) -> dict[str, str]:
    """Return name → content of the preseed file, the script and the user's SSH keys, served below ``url``.

    ``host`` is the name for error messages. The host key is not included.
    """
    beside = {"late.sh": _script(install), "authorized_keys": "".join(f"{key}\n" for key in install.ssh_keys)}
    return {"preseed.cfg": _preseed_file(install, host, url, beside), **beside}


def checksum(files: Mapping[str, str]) -> str:
    """Return the kernel argument that makes the installer accept only the preseed file in ``files``.

    The installer supports only MD5; no practical preimage attack on MD5 is known.
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
    return sh(
        'disk=$(readlink -f %s) && debconf-set partman-auto/disk "$disk" && debconf-set grub-installer/bootdev "$disk"',
        install.disk.path,
    )


def _late_command(install: Install, url: str, beside: Mapping[str, str]) -> str:
    """Return a shell command for the end of the installation.

    The command has neither line breaks nor backslashes, because both are special in a preseed file.
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
    return f"    address {install.network.address}\n    gateway {install.network.gateway}\n"


def command_line(install: Install, url: str) -> str:
    """Return the installer's kernel arguments: the URL of the preseed file, and the network settings."""
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
            # Only one name server is passed, because spaces in kernel arguments are not safe.
            f"netcfg/get_nameservers={wanted.nameservers[0]}",
            "netcfg/confirm_static=true",
        ]
    return " ".join([*arguments, *install.kernel_arguments])
