"""Names, paths, addresses and options of labs and lab hosts. Values only."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path
from typing import Any, Literal

from hostwright.common.errors import LabError
from lab.hardware import Hardware

Distro = Literal["bullseye", "bookworm", "trixie"]
Sudo = Literal["nopasswd", "password", "none"]
Kind = Literal["container", "vm"]
Real = Literal["", "driver", "cudnn", "packages"]

CHECKOUT = Path(__file__).resolve().parent.parent
DEFAULT_NAME = "lab"
USER = "ops"  # name of the login user of every host. Installers reject the name "admin".

#: private IPv4 address block of all labs. Each lab has a /22.
BLOCK = IPv4Network(os.environ.get("HOSTWRIGHT_LAB_NETWORK", "10.213.0.0/16"))
LAB_PREFIX = 22

#: pattern of a lab's name. Names are short because an interface name ``hw-<lab>-<3 digits>`` has at most 15 characters.
_LAB_NAME = re.compile(r"[a-z][a-z0-9]{0,7}")
MAX_HOSTS = 999
#: TCP port of the Redfish endpoint on each lab's bridge
BMC_PORT = 8443
_HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def cache_directory() -> Path:
    """Return the directory of base images and vendor files; ``HOSTWRIGHT_LAB_CACHE`` overrides the default."""
    return Path(os.environ.get("HOSTWRIGHT_LAB_CACHE", "/var/cache/hostwright-lab")).resolve()


def state_directory() -> Path:
    """Return the directory of running labs; ``HOSTWRIGHT_LAB_STATE`` overrides the default."""
    return Path(os.environ.get("HOSTWRIGHT_LAB_STATE", "/var/lib/hostwright-lab")).resolve()


@dataclass(frozen=True, slots=True)
class Lab:
    """Lab: a network bridge with hosts. Names of all objects derive from ``name``."""

    name: str = DEFAULT_NAME
    slot: int = 0  #: index of the lab's /22 in `BLOCK`; unique per lab
    cache: Path = field(default_factory=cache_directory)
    root: Path = field(default_factory=state_directory)  #: directory with one subdirectory for each lab

    def __post_init__(self) -> None:
        if not _LAB_NAME.fullmatch(self.name):
            raise LabError(
                f"{self.name!r} cannot name a lab; use 1 to 8 lowercase letters and digits, starting with a letter"
            )

    @property
    def state(self) -> Path:
        """Directory of this lab's state."""
        return self.root / self.name

    @property
    def subnet(self) -> IPv4Network:
        """Network of this lab's hosts."""
        step = 2 ** (32 - LAB_PREFIX)
        return IPv4Network((int(BLOCK.network_address) + self.slot * step, LAB_PREFIX))

    @property
    def gateway(self) -> IPv4Interface:
        """Address of the lab's bridge, the gateway of all hosts."""
        return IPv4Interface((self.subnet.network_address + 1, LAB_PREFIX))

    @property
    def bridge(self) -> str:
        """Name of the lab's network bridge."""
        return f"hwbr-{self.name}"

    @property
    def mac(self) -> str:
        """Fixed MAC address of the lab's bridge. Otherwise the address changes with the bridge's ports."""
        return f"02:48:57:{self.slot:02x}:00:00"

    @property
    def table(self) -> str:
        """Name of the lab's nftables table."""
        return f"hostwright_{self.name}"

    @property
    def private_key(self) -> Path:
        """SSH private key for all hosts of this lab."""
        return self.state / "ssh" / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        """File with the host keys of this lab, in OpenSSH's format."""
        return self.state / "ssh" / "known_hosts"

    @property
    def inventory(self) -> Path:
        """Inventory file of the lab's hosts.

        The default lab's inventory is in the checkout, any other in the lab's state directory.
        """
        if self.name == DEFAULT_NAME:
            return CHECKOUT / "inventory" / "lab.yml"
        return self.state / "inventory" / "lab.yml"

    @property
    def bmc(self) -> Path:
        """Directory of the lab's BMCs; missing without BMCs."""
        return self.state / "bmc"

    @property
    def bmc_url(self) -> str:
        """URL of the Redfish endpoint of all hosts."""
        return f"https://{self.gateway.ip}:{BMC_PORT}"

    @property
    def stack(self) -> Path:
        """Stack file that refers to the lab's vendor files."""
        return self.inventory.parent / "stacks" / "lab.yml"


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Properties of a new host."""

    distro: Distro = "bullseye"
    profile: str = "full"  #: name of the set of vendor files under /opt/hostwright-lab/apt
    sudo: Sudo = "nopasswd"
    sudo_password: str = "lab"  #: the login user's password for sudo  # noqa: S105
    apt_timers: bool = False  #: whether apt-daily and unattended-upgrades stay enabled, for tests of apt's locks
    disk_bytes: int = 0  #: size in bytes of a separate disk, for tests that fill the disk; 0: no disk
    hardware: Hardware = field(default_factory=Hardware)
    kind: Kind = "container"  #: kind of host; ``vm``: a QEMU virtual machine (see `lab.vm`)
    real: Real = ""  #: name of the real part of the stack; empty: all parts are stand-ins

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON values for the host's record."""
        values: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> HostOptions:
        """Return the options in ``values``, the output of `to_json`."""
        return cls(**{**values, "hardware": Hardware.from_json(values["hardware"])})


def require_host_name(name: str) -> None:
    """Raise `LabError` if ``name`` is invalid for a host, a directory or a control group."""
    if not _HOST_NAME.fullmatch(name):
        raise LabError(f"{name!r} cannot name a host; use lowercase letters, digits and inner hyphens")


@dataclass(frozen=True, slots=True)
class Machine:
    """Host of a lab. Paths, addresses and object names derive from ``name`` and ``index``."""

    lab: Lab
    name: str
    index: int

    def __post_init__(self) -> None:
        require_host_name(self.name)
        if not 1 <= self.index <= MAX_HOSTS:
            raise LabError(
                f"{self.name}: index {self.index} exceeds the lab's limit of {MAX_HOSTS} hosts; remove a host first"
            )

    @property
    def directory(self) -> Path:
        """Directory of this host's files on this machine."""
        return self.lab.state / "hosts" / self.name

    @property
    def merged(self) -> Path:
        """Path on this machine of the host's root filesystem."""
        return self.directory / "merged"

    @property
    def netns(self) -> Path:
        """File that keeps the host's network namespace alive."""
        return self.directory / "netns"

    @property
    def console(self) -> Path:
        """Log file of the host's console output."""
        return self.directory / "console.log"

    @property
    def address(self) -> IPv4Address:
        """IP address of the host. The lab's bridge has the address .1 of the same network."""
        return self.lab.subnet.network_address + 1 + self.index

    @property
    def mac(self) -> str:
        """MAC address of the host, fixed so that no stale neighbour entry blocks connections."""
        return f"02:48:57:{self.lab.slot:02x}:{self.index >> 8:02x}:{self.index & 255:02x}"

    @property
    def link(self) -> str:
        """Name on this machine of the host's network interface."""
        return f"hw-{self.lab.name}-{self.index}"

    @property
    def cgroup(self) -> str:
        """Path of the host's control group, relative to the mount point of a hierarchy."""
        return f"hostwright-lab/{self.lab.name}/{self.name}"
