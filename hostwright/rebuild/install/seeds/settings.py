"""Data classes for the settings of a host's installation in the inventory.

``Install`` (``hostwright_install``) is for an installation with Hostwright's seed (files for the installer) and the
BMC. ``Reinstall`` (``hostwright_reinstall``) is for a site's own command.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from hostwright.rebuild.install.seeds import fields as v

#: default time limit in seconds for an installation; boots take up to 10 minutes, installers up to 20 minutes
INSTALL_TIMEOUT_S = 2400.0


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk to overwrite: its path, or the properties by which Ubuntu's installer matches disks.

    ``serial``, ``model`` and ``vendor`` are udev's ID_SERIAL, ID_MODEL and ID_VENDOR, with the wildcards ``*`` and
    ``?``. ``size`` selects the largest or smallest matching disk.
    """

    path: v.Device = ""
    serial: v.DiskText = ""
    model: v.DiskText = ""
    vendor: v.DiskText = ""
    size: Literal["", "largest", "smallest"] = ""
    ssd: bool | None = None

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a disk without any property, because it would match every disk."""
        if not self.match:
            raise ValueError("no disk is named: give its path, or a serial, model, vendor, size or ssd")

    @property
    def match(self) -> dict[str, str | bool]:
        """Properties of the disk as the mapping ``match`` of Ubuntu's autoinstall."""
        given = {setting.name: getattr(self, setting.name) for setting in fields(self)}
        return {name: value for name, value in given.items() if value not in ("", None)}


@dataclass(frozen=True, slots=True)
class Network:
    """The host's network interface, during the installation and afterwards.

    Without ``interface`` and ``mac``, every wired interface uses DHCP. ``address`` is ``dhcp`` or a fixed address with
    its prefix (``10.0.0.7/24``).
    """

    interface: v.Interface = ""
    mac: v.Mac = ""
    address: v.Address = "dhcp"
    gateway: v.Ip = ""
    nameservers: tuple[v.Ip, ...] = ()

    def __post_init__(self) -> None:
        """Raise ``ValueError`` if fields conflict, such as a gateway without a fixed address."""
        if self.interface and self.mac:
            raise ValueError("`interface` and `mac` are both given; give one of them")
        if not self.fixed and (self.gateway or self.nameservers):
            raise ValueError(
                "`address` is 'dhcp' (the default), so the DHCP server provides gateway and nameservers; remove "
                "`gateway` and `nameservers`, or set `address` to a fixed address"
            )
        if self.fixed and not (self.interface or self.mac):
            raise ValueError("a fixed address needs an interface; give `interface` or `mac`")
        if self.gateway and ipaddress.ip_address(self.gateway) not in self.ip.network:
            raise ValueError(f"the gateway {self.gateway} is not within {self.ip.network}")

    @property
    def fixed(self) -> bool:
        """Whether the host has a fixed address."""
        return self.address != "dhcp"

    @property
    def ip(self) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
        """The host's fixed address with its prefix. Use it only if ``fixed`` is true."""
        return ipaddress.ip_interface(self.address)


def _as_disk(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


DiskField = Annotated[Disk, BeforeValidator(_as_disk)]


@dataclass(frozen=True, slots=True)
class Install:
    """Settings of an unattended installation with Hostwright's seed (files for the installer).

    ``timeout`` is in seconds, from power-on until SSH answers. ``serve`` is this machine's address and port for the
    host. ``path`` is a fixed URL path of the seed. ``allow_from`` are the clients that may fetch the seed: an address,
    a network or ``any``; by default the fixed address in ``network``. ``https`` needs a boot loader that passes
    Hostwright's CA certificate to the installer. ``layout`` raid1 needs two disks and UEFI. ``kernel_arguments`` apply
    to the installer and to the new system. ``late_commands`` run in the installer, with the new system at ``/target``.
    """

    serve: v.Endpoint
    os: Literal["ubuntu", "debian"]
    release: v.Release
    disk: DiskField
    ssh_keys: tuple[v.PublicKey, ...]
    second_disk: DiskField | None = None
    layout: Literal["lvm", "direct", "raid1"] = "direct"
    boot: Literal["network", "media"] = "network"
    image: v.Url = ""
    hostname: v.Hostname = ""  #: name of the new system; default: the inventory name up to the first dot
    user: v.User = ""  #: user to create; default: the login user from the inventory
    password_hash: v.Hash = None  #: hash of the user's password; default: no password, so only SSH keys allow a login
    network: Network = field(default_factory=Network)
    mirror: v.Url = ""  #: URL of a mirror of the distribution; default: the installer's choice
    proxy: v.Url = ""
    timezone: v.Timezone = "Etc/UTC"
    locale: v.Locale = "en_US.UTF-8"
    keyboard: v.Keyboard = "us"
    packages: tuple[v.Package, ...] = ()
    kernel_arguments: tuple[v.KernelArgument, ...] = ()
    late_commands: tuple[v.Command, ...] = ()
    timeout: v.Duration = INSTALL_TIMEOUT_S
    path: v.Path = ""
    allow_from: v.Peers = ""
    https: bool = False

    @property
    def timeout_s(self) -> float:
        """Time limit of the installation, in seconds."""
        return self.timeout

    @property
    def only_from(self) -> str | None:
        """Address or network of the clients that may fetch the seed; ``None`` for any client."""
        if self.allow_from:
            return None if self.allow_from == "any" else self.allow_from
        return str(self.network.ip.ip) if self.network.fixed else None


@dataclass(frozen=True, slots=True)
class Reinstall:
    """A site's own command (MAAS, Foreman, Warewulf) that reinstalls a host, run on this machine by ``/bin/sh``.

    The command must exit with 0 within ``timeout`` seconds. ``host_keys`` is the source of the new host key. With
    ``given``, this machine serves the key below ``HOSTWRIGHT_SEED``, and the command must make the new system fetch it.
    With ``console``, the new system generates the key, and this machine reads the key from the host's console. ``path``
    is a fixed URL path of the served key and requires ``allow_from``. By default, the path is random. With ``https``,
    the command also receives the certificate to trust.
    """

    command: v.Command
    timeout: v.Duration = INSTALL_TIMEOUT_S
    host_keys: Literal["given", "console"] = "console"
    serve: v.OptionalEndpoint = ""
    path: v.Path = ""
    allow_from: v.Peers = ""
    https: bool = False

    @property
    def timeout_s(self) -> float:
        """Time limit of the reinstall command, in seconds."""
        return self.timeout


def reinstall_environment(
    *, host: str, address: str, reason: str, run: str, host_key: str = "", seed: str = "", seed_ca: str = ""
) -> dict[str, str]:
    """Return the environment variables for a site's reinstall command, with the prefix ``HOSTWRIGHT_``.

    ``REASON`` is the reason for the rebuild, ``RUN`` the run's ID, and ``HOST_KEY`` the new system's public key line,
    if this machine generates the key. ``SEED`` is the URL of the key files and ``user-data`` for cloud-init. With
    HTTPS, ``SEED_CA`` is a local PEM file with the certificate to trust.
    """
    named = {
        "HOST": host, "ADDRESS": address, "REASON": reason, "RUN": run, "HOST_KEY": host_key, "SEED": seed,
        "SEED_CA": seed_ca,
    }  # fmt: skip
    return {f"HOSTWRIGHT_{name}": _printable(text) for name, text in named.items()}


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
