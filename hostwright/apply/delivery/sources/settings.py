"""The inventory settings for the delivery of files to a host, and for serving these files to other hosts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast, get_args

from hostwright.apply.delivery.fetching import web_urls
from hostwright.apply.delivery.sources.sources import UPLOADS
from hostwright.common.errors import InputError, Mistakes
from hostwright.inventory import Host
from hostwright.plan.targets import TargetHost
from hostwright.stack.store.artifacts import AnyArtifact
from hostwright.stack.store.hostcache import CACHE
from hostwright.transport.exchange import plain_address

Way = Literal["pull", "push", "direct"]

ARTIFACTS, DIRECT = "artifacts", "direct"
ADDRESS, PORT = "hostwright_files_address", "hostwright_files_port"
PEER_GROUP, PEER_UPLOADS = "hostwright_peer_group", "hostwright_peer_uploads"
PEER_RATE, PEER_PORT = "hostwright_peer_rate", "hostwright_peer_port"

WAYS: tuple[Way, ...] = get_args(Way)
#: maximum value of ``hostwright_peer_uploads`` (our choice). More uploads would only share the same network card.
MOST_UPLOADS = 16
MOST_MB_PER_S = 100_000  #: maximum value of ``hostwright_peer_rate`` in MB/s (800 Gbit/s)
#: lowest and highest port that the settings accept. Only root may listen on a port below 1024.
LEAST_PORT, MOST_PORT = 1024, 65535

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ports:
    """A range of TCP ports. A file server uses one free port of the range. ``0`` means any free port."""

    first: int = 0
    last: int = 0

    def __str__(self) -> str:
        return f"{self.first}-{self.last}" if self.last > self.first else str(self.first)


@dataclass(frozen=True, slots=True)
class FileSettings:
    """The delivery settings of one host. ``way`` selects HTTP (from this machine or another host), SSH, or vendors.

    ``address`` and ``ports`` are for the HTTP server on this machine. The default address is the local address of the
    SSH connection.

    ``uploads``, ``rate`` and ``peer_ports`` are for the file server on the host, which serves hosts of the same
    ``group``. ``uploads`` limits the simultaneous uploads (0: none), and ``rate`` the total bytes per second (0:
    unlimited).
    """

    way: Way = "pull"
    address: str = ""
    ports: Ports = Ports()
    group: str = ""
    uploads: int = UPLOADS
    rate: int = 0
    peer_ports: Ports = Ports()
    cache: str = CACHE  #: directory on the host that contains the delivered files

    def fetches(self, artifact: AnyArtifact) -> bool:
        """Return whether the host fetches ``artifact`` from the vendor instead of receiving it from this machine."""
        return self.way == DIRECT and bool(web_urls(artifact))


def files_by_http(targets: Iterable[TargetHost]) -> dict[str, FileSettings]:
    """Return host name → file settings, for the hosts in ``targets`` that fetch files by HTTP."""
    settings = {target.name: read_file_settings(target.host) for target in targets if not target.host.local}
    return {name: one for name, one in settings.items() if one.way == "pull"}


def read_file_settings(host: Host) -> FileSettings:
    """Return the file settings in a host's inventory data. Raises ``InputErrors`` with every invalid setting."""
    mistakes = Mistakes()
    none = FileSettings()

    def read(name: str, reader: Callable[[Any], T | None], default: T, expected: str) -> T:
        value = host.get(name)
        if value is None:
            return default
        result = reader(value)
        if result is None:
            with mistakes:
                raise InputError(f"{name}: found {value!r}, expected {expected}", host.vars[name].origin.exact)
            return default
        return result

    uploads, ports = f"a whole number from 0 (none) to {MOST_UPLOADS}", "a TCP port above 1023, or a range such as"
    settings = FileSettings(
        read(ARTIFACTS, _way, none.way, "pull (by HTTP, from this machine or another host), push (over SSH) or "
             "direct (from the vendor)"),
        read(ADDRESS, _address, none.address, "an IP address of this machine"),
        read(PORT, _ports, none.ports, f"{ports} 8470-8479"),
        read(PEER_GROUP, _name, none.group, "the name of a group, such as a rack's"),
        read(PEER_UPLOADS, _uploads, none.uploads, uploads),
        read(PEER_RATE, _rate, none.rate, "megabytes a second, such as 100"),
        read(PEER_PORT, _ports, none.peer_ports, f"{ports} 8480-8489"),
    )  # fmt: skip
    mistakes.refuse()
    return settings


def _way(value: Any) -> Way | None:
    return cast(Way, value) if value in WAYS else None


def _address(value: Any) -> str | None:
    return (plain_address(value) or None) if isinstance(value, str) else None


def _name(value: Any) -> str | None:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip() else None


def _uploads(value: Any) -> int | None:
    number = _whole(value)
    return number if number is not None and number <= MOST_UPLOADS else None


def _rate(value: Any) -> int | None:
    """Return the setting ``rate`` in bytes per second; ``None`` if ``value`` is invalid."""
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else 0.0
    except ValueError:
        return None
    return int(number * 1e6) if 0.1 <= number <= MOST_MB_PER_S else None


def _ports(value: Any) -> Ports | None:
    match = re.fullmatch(r"([0-9]{4,5})(?:\s*-\s*([0-9]{4,5}))?", str(value).strip(), re.ASCII)
    if match is None or isinstance(value, bool):
        return None
    first, last = int(match[1]), int(match[2] or match[1])
    return Ports(first, last) if LEAST_PORT <= first <= last <= MOST_PORT else None


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    return int(str(value)) if re.fullmatch(r"[0-9]{1,3}", str(value), re.ASCII) else None
