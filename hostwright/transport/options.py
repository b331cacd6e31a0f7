"""How to connect: settings for all hosts of a run, and what their connections share."""

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
    """What the connections of a run share: files that are read once, and the connections to jump hosts."""

    def __init__(self) -> None:
        self.known_hosts: FileCache[KnownHosts] = FileCache(KnownHosts.read)
        self.keys: FileCache[paramiko.PKey] = FileCache(_load_key)
        self.jumps = Jumps()
        self.openssh = OpenSsh()


@dataclass(frozen=True, slots=True)
class Options:
    """How to connect. Use a single value for all hosts of a run: its connections share what they read.

    ``host_keys``: ``strict`` refuses a host whose key is not known; ``accept-new`` records an unknown key and
    continues. Both refuse a changed key. ``ssh_config`` is read instead of ``~/.ssh/config`` and
    ``/etc/ssh/ssh_config``. ``connect_timeout_s`` (seconds, for everything up to the login) and ``keepalive_s`` apply
    unless the inventory or ``ssh_config`` say otherwise.
    """

    host_keys: Literal["strict", "accept-new"] = "strict"
    connect_timeout_s: float = 15.0
    keepalive_s: float = 15.0
    ssh_config: Path | None = None
    use_agent: bool = True
    shared: Shared = field(default_factory=Shared, compare=False, repr=False)
