"""How a host gets a new operating system: the settings, of which each is a value with a form of its own.

``hostwright_install`` says what our own way does: a seed rendered and served by us, and a boot from network or media
ordered at the BMC. ``hostwright_reinstall`` names a site's own command instead.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from hostwright.rebuild.install.seeds import fields as v

#: Servers with much memory take up to 10 minutes from power-on to the boot loader; the installer needs 8 to 20 with a
#: mirror nearby, and there is one more start at the end.
INSTALL_TIMEOUT_S = 2400.0


@dataclass(frozen=True, slots=True)
class Disk:
    """Which disk is overwritten: its path, or what it must match as Ubuntu's installer compares it.

    ``serial``, ``model`` and ``vendor`` are udev's ID_SERIAL, ID_MODEL and ID_VENDOR, with ``*`` and ``?``; ``size``
    takes the largest or smallest of those that match.
    """

    path: v.Device = ""
    serial: v.DiskText = ""
    model: v.DiskText = ""
    vendor: v.DiskText = ""
    size: Literal["", "largest", "smallest"] = ""
    ssd: bool | None = None

    def __post_init__(self) -> None:
        """Refuse a disk of which nothing is said: it would be any disk."""
        if not self.match:
            raise ValueError("no disk is named: give its path, or a serial, model, vendor, size or ssd")

    @property
    def match(self) -> dict[str, str | bool]:
        """What is said of the disk, by the names that autoinstall's ``match`` has."""
        given = {setting.name: getattr(self, setting.name) for setting in fields(self)}
        return {name: value for name, value in given.items() if value not in ("", None)}


@dataclass(frozen=True, slots=True)
class Network:
    """The interface that the host is reached by, during the installation and afterwards.

    Without ``interface`` and ``mac`` every wired interface asks for an address. ``address`` is ``dhcp`` or a fixed one
    with its prefix (``10.0.0.7/24``).
    """

    interface: v.Interface = ""
    mac: v.Mac = ""
    address: v.Address = "dhcp"
    gateway: v.Ip = ""
    nameservers: tuple[v.Ip, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what does not go together."""
        if self.interface and self.mac:
            raise ValueError("interface and mac are both given; give one of them")
        if not self.fixed and (self.gateway or self.nameservers):
            raise ValueError("gateway and nameservers go with a fixed address; with dhcp the server gives them")
        if self.fixed and not (self.interface or self.mac):
            raise ValueError("a fixed address needs the interface that gets it: give interface or mac")
        if self.gateway and ipaddress.ip_address(self.gateway) not in self.ip.network:
            raise ValueError(f"the gateway {self.gateway} is not within {self.ip.network}")

    @property
    def fixed(self) -> bool:
        """Whether the host has a fixed address."""
        return self.address != "dhcp"

    @property
    def ip(self) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
        """The fixed address; only where there is one."""
        return ipaddress.ip_interface(self.address)


def _as_disk(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


DiskField = Annotated[Disk, BeforeValidator(_as_disk)]


@dataclass(frozen=True, slots=True)
class Install:
    """An unattended installation by our own seed. ``timeout`` is in seconds, from power-on until ssh answers.

    ``serve`` is this machine's address and port as the host reaches them. ``path`` is the fixed name under which a
    site's PXE, or the boot loader on its media, looks for the seed. ``allow_from`` says who may fetch it: an address,
    a network, or ``any``; it is needed, unless ``network`` gives the host a fixed address, which it then is. ``https``
    needs a boot loader that tells the installer of our authority (``tls``).
    ``layout`` raid1 needs two disks and a host that starts by UEFI. ``kernel_arguments`` are given to the installer and
    to the installed system. ``late_commands`` run in the installer with the new system at ``/target``.
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
    hostname: v.Hostname = ""  #: the first label of the host's name in the inventory, when absent
    user: v.User = ""  #: the user that the inventory logs in as, when absent
    password_hash: v.Hash = None  #: without one the user has no password, and logs in by key only
    network: Network = field(default_factory=Network)
    mirror: v.Url = ""  #: the installer's own, when absent
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
        """How long the installation may take, in seconds."""
        return self.timeout

    @property
    def only_from(self) -> str | None:
        """The address or network that may fetch the seed; ``None`` for anybody."""
        if self.allow_from:
            return None if self.allow_from == "any" else self.allow_from
        return str(self.network.ip.ip) if self.network.fixed else None


@dataclass(frozen=True, slots=True)
class Reinstall:
    """A site's own command (MAAS, Foreman, Warewulf) that gives a host a new system, run here by ``/bin/sh``.

    It must end with status 0 once the installation is under way or done, within ``timeout`` seconds. ``host_keys`` says
    where the new host key comes from: ``given`` (ours, which the command lets the new system fetch below
    ``HOSTWRIGHT_SEED``; ``serve`` is needed) or ``console`` (the new system's own, learned from its console).
    ``path`` fixes that address, and needs ``allow_from``; without it a new one is made up that cannot be guessed. With
    ``https`` the command is also told whom to trust.
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
        """How long the command may take, in seconds."""
        return self.timeout


def reinstall_environment(
    *, host: str, address: str, reason: str, run: str, host_key: str = "", seed: str = "", seed_ca: str = ""
) -> dict[str, str]:
    """What a site's command finds in its environment.

    ``HOSTWRIGHT_HOST`` and ``_ADDRESS`` name the host as the inventory does, ``_REASON`` and ``_RUN`` say why and in
    whose run. Where keys are given, ``_HOST_KEY`` is the public key line that the new system will have, and ``_SEED``
    the URL below which it finds ``ssh_host_ed25519_key`` with its ``.pub`` and, for cloud-init, ``user-data``. Where
    that is served over HTTPS, ``_SEED_CA`` is a file here with the certificate, in PEM, that it must trust for this.
    """
    named = {
        "HOST": host, "ADDRESS": address, "REASON": reason, "RUN": run, "HOST_KEY": host_key, "SEED": seed,
        "SEED_CA": seed_ca,
    }  # fmt: skip
    return {f"HOSTWRIGHT_{name}": _printable(text) for name, text in named.items()}


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
