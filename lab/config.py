"""Labs and lab hosts: names, places, addresses, options. Values only: nothing here touches the world."""

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
USER = "ops"  # the login user of every host; installers refuse the name "admin"

#: All labs live in this private block, a /22 each: 64 labs of 1021 hosts.
BLOCK = IPv4Network(os.environ.get("HOSTWRIGHT_LAB_NETWORK", "10.213.0.0/16"))
LAB_PREFIX = 22

#: An interface name holds 15 characters: ``hw-<8 letters>-<3 digits>`` is as long as it gets.
_LAB_NAME = re.compile(r"[a-z][a-z0-9]{0,7}")
MAX_HOSTS = 999
BMC_PORT = 8443  #: on the bridge's own address, so one number serves all labs
_HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def cache_directory() -> Path:
    """Where base images and vendor files are kept between runs; ``HOSTWRIGHT_LAB_CACHE`` overrides."""
    return Path(os.environ.get("HOSTWRIGHT_LAB_CACHE", "/var/cache/hostwright-lab")).resolve()


def state_directory() -> Path:
    """Where running labs keep their hosts; ``HOSTWRIGHT_LAB_STATE`` overrides."""
    return Path(os.environ.get("HOSTWRIGHT_LAB_STATE", "/var/lib/hostwright-lab")).resolve()


@dataclass(frozen=True, slots=True)
class Lab:
    """One lab: a bridge with hosts. All its names on the machine follow from ``name``: it can be found again."""

    name: str = DEFAULT_NAME
    slot: int = 0  #: which /22 of the block; two labs never share one
    cache: Path = field(default_factory=cache_directory)
    root: Path = field(default_factory=state_directory)  #: holds one directory per lab

    def __post_init__(self) -> None:
        if not _LAB_NAME.fullmatch(self.name):
            raise LabError(f"{self.name!r} cannot name a lab: take 1 to 8 small letters and digits, a letter first")

    @property
    def state(self) -> Path:
        """This lab's own directory."""
        return self.root / self.name

    @property
    def subnet(self) -> IPv4Network:
        """The network of this lab's hosts."""
        step = 2 ** (32 - LAB_PREFIX)
        return IPv4Network((int(BLOCK.network_address) + self.slot * step, LAB_PREFIX))

    @property
    def gateway(self) -> IPv4Interface:
        """The bridge's own address."""
        return IPv4Interface((self.subnet.network_address + 1, LAB_PREFIX))

    @property
    def bridge(self) -> str:
        """Name of the bridge."""
        return f"hwbr-{self.name}"

    @property
    def mac(self) -> str:
        """The bridge's fixed MAC address: by default it would take the lowest of its cables', which come and go."""
        return f"02:48:57:{self.slot:02x}:00:00"

    @property
    def table(self) -> str:
        """Name of the nftables table."""
        return f"hostwright_{self.name}"

    @property
    def private_key(self) -> Path:
        """The key that opens every host of this lab."""
        return self.state / "ssh" / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        """The host keys of this lab, in OpenSSH's format."""
        return self.state / "ssh" / "known_hosts"

    @property
    def inventory(self) -> Path:
        """The file of the hosts' inventory: in the checkout for the default lab, else beside its state."""
        if self.name == DEFAULT_NAME:
            return CHECKOUT / "inventory" / "lab.yml"
        return self.state / "inventory" / "lab.yml"

    @property
    def bmc(self) -> Path:
        """The directory of the lab's BMCs; it exists only if the lab has them."""
        return self.state / "bmc"

    @property
    def bmc_url(self) -> str:
        """The URL of the lab's Redfish endpoint: on the bridge, with all hosts as its systems."""
        return f"https://{self.gateway.ip}:{BMC_PORT}"

    @property
    def stack(self) -> Path:
        """The stack file of the lab's vendor files."""
        return self.inventory.parent / "stacks" / "lab.yml"


@dataclass(frozen=True, slots=True)
class HostOptions:
    """The properties of a host to be made."""

    distro: Distro = "bullseye"
    profile: str = "full"  #: which vendor files it sees under /opt/hostwright-lab/apt
    sudo: Sudo = "nopasswd"
    sudo_password: str = "lab"  #: asked for when ``sudo`` is ``password``  # noqa: S105
    apt_timers: bool = False  #: keep apt-daily and unattended runs, for tests of conflicts with them
    disk_bytes: int = 0  #: size of a disk of its own, for tests that fill it; 0: it shares the machine's
    hardware: Hardware = field(default_factory=Hardware)  #: the cards that it shows
    kind: Kind = "container"  #: ``vm``: a whole machine with a kernel of its own, under QEMU (see `lab.vm`)
    real: Real = ""  #: what of its stack is NVIDIA's own, where the lab has a stand-in otherwise

    def to_json(self) -> dict[str, Any]:
        """Return the options as the JSON values that the host's record holds."""
        values: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> HostOptions:
        """Return the options that `to_json` wrote."""
        return cls(**{**values, "hardware": Hardware.from_json(values["hardware"])})


def require_host_name(name: str) -> None:
    """Raise `LabError` if ``name`` cannot be a host's: it also names a directory and a control group."""
    if not _HOST_NAME.fullmatch(name):
        raise LabError(f"{name!r} cannot name a host: take small letters, digits and inner hyphens")


@dataclass(frozen=True, slots=True)
class Machine:
    """One host of one lab, by name and index: the places and names that follow from them."""

    lab: Lab
    name: str
    index: int

    def __post_init__(self) -> None:
        require_host_name(self.name)
        if not 1 <= self.index <= MAX_HOSTS:
            raise LabError(f"a lab holds {MAX_HOSTS} hosts; {self.name} would be number {self.index}")

    @property
    def directory(self) -> Path:
        """The directory with everything about this host on the machine's disk."""
        return self.lab.state / "hosts" / self.name

    @property
    def merged(self) -> Path:
        """The host's root filesystem, as the machine sees it."""
        return self.directory / "merged"

    @property
    def netns(self) -> Path:
        """The file that holds the host's network namespace open."""
        return self.directory / "netns"

    @property
    def console(self) -> Path:
        """What the host printed on its console."""
        return self.directory / "console.log"

    @property
    def address(self) -> IPv4Address:
        """The host's address; .1 is the bridge."""
        return self.lab.subnet.network_address + 1 + self.index

    @property
    def mac(self) -> str:
        """A fixed address per index: a changed one leaves a stale neighbour entry (once 27 s without a connection)."""
        return f"02:48:57:{self.lab.slot:02x}:{self.index >> 8:02x}:{self.index & 255:02x}"

    @property
    def link(self) -> str:
        """The machine's end of the host's cable."""
        return f"hw-{self.lab.name}-{self.index}"

    @property
    def cgroup(self) -> str:
        """Path of the host's own control group, below each hierarchy's mount point."""
        return f"hostwright-lab/{self.lab.name}/{self.name}"
