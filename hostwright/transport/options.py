"""Connection settings for all hosts of a run, and caches that all connections of the run share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hostwright.transport.identity.hostkeys import KnownHosts
from hostwright.transport.login.cache import FileCache
from hostwright.transport.routing.jumps import Jumps
from hostwright.transport.routing.openssh import OpenSsh

if TYPE_CHECKING:
    import paramiko


def _load_key(path: Path) -> paramiko.PKey:
    from paramiko import PKey

    return PKey.from_path(path)


class Shared:
    """Caches that all connections of a run share: parsed files, and open connections to jump hosts."""

    def __init__(self) -> None:
        self.known_hosts: FileCache[KnownHosts] = FileCache(KnownHosts.read)
        self.keys: FileCache[paramiko.PKey] = FileCache(_load_key)
        self.jumps = Jumps()
        self.openssh = OpenSsh()


@dataclass(frozen=True, slots=True)
class Options:
    """Connection settings. Use one value for all hosts of a run, so that their connections share the caches.

    With ``host_keys`` ``strict``, a host with an unknown key is refused; with ``accept-new``, the key is recorded. A
    changed key is always refused. ``ssh_config`` replaces ``~/.ssh/config`` and ``/etc/ssh/ssh_config``.
    ``connect_timeout_s`` are the seconds from the start of a connection to the end of the login, and ``keepalive_s``
    the seconds between keepalive messages; the inventory and ``ssh_config`` take precedence.
    """

    host_keys: Literal["strict", "accept-new"] = "strict"
    connect_timeout_s: float = 15.0
    keepalive_s: float = 15.0
    ssh_config: Path | None = None
    use_agent: bool = True
    shared: Shared = field(default_factory=Shared, compare=False, repr=False)
