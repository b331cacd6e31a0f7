"""How a host gets a new operating system, read from the inventory.

``hostwright_install`` says what our own way does: a seed rendered and served by us, and a boot from network or media
ordered at the BMC. ``hostwright_reinstall`` names a site's own command instead. Both may be written as a mapping or
flat (``hostwright_install_disk``); what groups and the host say is merged field by field.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from hostwright.common.errors import InputError, InputErrors
from hostwright.inventory import Host, bind, definitions
from hostwright.rebuild.install.seeds import fields as v

INSTALL, REINSTALL = "hostwright_install", "hostwright_reinstall"
#: Servers with much memory take up to 10 minutes from power-on to the boot loader; the installer needs 8 to 20 with a
#: mirror nearby, and there is one more start at the end.
INSTALL_TIMEOUT_S = 2400.0
#: whoever guesses a fixed path would be given the private host key
WHO_IS_NEEDED = "is needed with a fixed path: an address, a network, or any"
FIRST_AUTOINSTALL = (20, 4)  #: the first Ubuntu whose installer takes an autoinstall seed


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
            raise ValueError("nothing says which disk it is: give its path, or a serial, model, vendor, size or ssd")

    @property
    def match(self) -> dict[str, str | bool]:
        """What is said of the disk, by the names that autoinstall's ``match`` has."""
        said = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in said.items() if value not in ("", None)}


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
            raise ValueError("gateway and nameservers go with a fixed address; with dhcp they come from there")
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
    a network, or ``any``; it is needed, unless ``network`` gives the host a fixed address, which it then is.
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
    ``path`` fixes that address, and needs ``allow_from``; without it a new one is made up that cannot be guessed.
    """

    command: v.Command
    timeout: v.Duration = INSTALL_TIMEOUT_S
    host_keys: Literal["given", "console"] = "console"
    serve: v.OptionalEndpoint = ""
    path: v.Path = ""
    allow_from: v.Peers = ""

    @property
    def timeout_s(self) -> float:
        """How long the command may take, in seconds."""
        return self.timeout


def reinstall_environment(
    *, host: str, address: str, reason: str, run: str, host_key: str = "", seed: str = ""
) -> dict[str, str]:
    """What a site's command finds in its environment.

    ``HOSTWRIGHT_HOST`` and ``_ADDRESS`` name the host as the inventory does, ``_REASON`` and ``_RUN`` say why and in
    whose run. Where keys are given, ``_HOST_KEY`` is the public key line that the new system will have, and ``_SEED``
    the URL below which it finds ``ssh_host_ed25519_key`` with its ``.pub`` and, for cloud-init, ``user-data``.
    """
    named = {"HOST": host, "ADDRESS": address, "REASON": reason, "RUN": run, "HOST_KEY": host_key, "SEED": seed}
    return {f"HOSTWRIGHT_{name}": _printable(text) for name, text in named.items()}


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def read_install(host: Host) -> Install | None:
    """The host's installation settings, or ``None``. Raises ``InputErrors`` with every mistake, each with its place."""
    if not _wanted(host, INSTALL):
        return None
    bound = bind(Install, INSTALL, host)
    user = bound.user or host.user or ""
    install = replace(bound, hostname=bound.hostname or _first_label(host.name), user=user)
    _refuse(host, INSTALL, _conflicts(install))
    return install


def read_reinstall(host: Host) -> Reinstall | None:
    """The site's own command for the host, or ``None``. Raises ``InputErrors`` with every mistake and its place."""
    if not _wanted(host, REINSTALL):
        return None
    reinstall = bind(Reinstall, REINSTALL, host)
    _refuse(host, REINSTALL, _conflicts_given(reinstall) if reinstall.host_keys == "given" else ())
    return reinstall


def _wanted(host: Host, name: str) -> bool:
    """Whether a host has these settings. An empty variable of a stronger level takes away what a group gives."""
    given = {one: _written(host, one) for one in (INSTALL, REINSTALL)}
    if given[INSTALL] and given[REINSTALL]:
        raise InputError(
            f"{REINSTALL} and {INSTALL} are both set, but only one of them can install the host: remove one",
            _place(host, REINSTALL, ""),
        )
    return given[name]


def _written(host: Host, name: str) -> bool:
    if name in host.vars:
        return host.get(name) is not None
    return any(other.startswith(f"{name}_") for other in host.vars)


def _first_label(name: str) -> str:
    """The hostname within an inventory's name; empty where that is an address or cannot be a hostname."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        label = name.partition(".")[0]
        return label if v.is_hostname(label) else ""
    return ""


def _conflicts(install: Install) -> Iterator[tuple[str, str]]:
    """What does not go together, by the field that is to be changed."""
    if not install.hostname:
        yield "hostname", "is needed: the host's name in the inventory cannot be a system's hostname"
    if not install.user:
        yield "user", "is needed: the user that the new system gets, and that Hostwright logs in as"
    elif install.user in v.RESERVED_USERS:
        yield "user", f"{install.user!r} cannot be made by an installer; name another user that Hostwright logs in as"
    if not install.path:
        yield "path", "is needed: the name under which the installer finds its seed"
    if not (install.allow_from or install.network.fixed):
        yield "allow_from", WHO_IS_NEEDED
    if not install.ssh_keys:
        yield "ssh_keys", "is empty: nobody could log in to the new system"
    if install.boot == "media" and not install.image:
        yield "image", "is needed to boot from media: the URL of the installer's ISO, as the BMC reaches it"
    if install.layout == "raid1" and install.second_disk is None:
        yield "second_disk", "is needed for the layout raid1"
    elif install.layout != "raid1" and install.second_disk is not None:
        yield "second_disk", f"is not used by the layout {install.layout}: take it away, or say layout: raid1"
    elif install.second_disk == install.disk:
        yield "second_disk", "is the same as disk"
    yield from _conflicts_debian(install) if install.os == "debian" else _conflicts_ubuntu(install)


def _conflicts_given(reinstall: Reinstall) -> Iterator[tuple[str, str]]:
    if not reinstall.serve:
        yield "serve", "is needed where host_keys is given: this machine's address and a port, like 10.0.0.1:8098"
    if reinstall.path and not reinstall.allow_from:
        yield "allow_from", WHO_IS_NEEDED


def _conflicts_ubuntu(install: Install) -> Iterator[tuple[str, str]]:
    year, _, month = install.release.partition(".")
    release = (int(year), int(month)) if len(month) == 2 else None
    if release is None or release < FIRST_AUTOINSTALL:
        yield (
            "release",
            f"found {install.release!r}, expected a release of Ubuntu that takes autoinstall: '20.04' or later",
        )
    for key, disk in (("disk", install.disk), ("second_disk", install.second_disk)):
        if disk is not None and disk.path.startswith("/dev/disk/"):
            yield key, "Ubuntu's installer knows a path only as the kernel names it (/dev/sda); give serial or model"
        # Those match a disk by neither vendor (before subiquity 21.01.1) nor the smallest size (before 20.06.1).
        if disk is not None and release == FIRST_AUTOINSTALL and (disk.vendor or disk.size == "smallest"):
            yield (
                key,
                f"the first installers of Ubuntu {install.release} pass over vendor and size: smallest, and would "
                "overwrite another disk: give serial or model",
            )


def _conflicts_debian(install: Install) -> Iterator[tuple[str, str]]:
    if "." in install.release:
        yield "release", f"found {install.release!r}, expected a release of Debian, like '11'"
    if install.layout == "raid1":
        yield "layout", f"raid1 is written for Ubuntu's installer only: take lvm or direct, or {REINSTALL}"
    if set(install.disk.match) != {"path"}:
        yield "disk", "Debian's installer needs a path; /dev/disk/by-id/… names a disk by its model and serial number"
    if install.network.fixed and not (install.network.gateway and install.network.nameservers):
        yield "network", "Debian's installer needs gateway and nameservers for a fixed address"


def _refuse(host: Host, name: str, wrong: Iterable[tuple[str, str]]) -> None:
    mistakes = [InputError(f"{name}.{key}: {sentence}", _place(host, name, key)) for key, sentence in wrong]
    if mistakes:
        raise InputErrors(mistakes)


def _place(host: Host, name: str, key: str) -> str | None:
    """Where a setting was written, else the settings as a whole, else any of them."""
    given = definitions(host, name, key) if key else ()
    if given:
        return given[-1].origin.exact
    whole = host.vars.get(name) or next((one for other, one in host.vars.items() if other.startswith(f"{name}_")), None)
    return whole.origin.exact if whole else None
