"""Replaces the recorded keys of a host in the user's ``known_hosts`` files.

Only entries for the name with which sessions verify the host are changed (``host`` or ``[host]:port``). System-wide
files are never written.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hostwright.common.errors import HostError, Refused
from hostwright.common.places import refused, sync
from hostwright.transport import Options, Target
from hostwright.transport.identity import hostkeys, lines
from hostwright.transport.identity.hostkeys import ANOTHER_KNOWN_HOSTS, KnownHost
from hostwright.transport.identity.keys import HostKey
from hostwright.transport.routing.route import endpoint_of

SYSTEM = Path("/etc/ssh")  #: directory of the system-wide ``known_hosts`` files


@dataclass(frozen=True, slots=True)
class Replaced:
    """The recorded keys of a host before (``before``) and after (``now``) a change, and the changed files."""

    host: str
    before: tuple[KnownHost, ...]
    now: tuple[HostKey, ...]
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class _Server:
    host: str
    name: str
    portless: str  #: name without the port; empty if ``known_hosts`` lines without a port do not apply
    own: tuple[Path, ...]
    system: tuple[Path, ...]
    revoking: tuple[Path, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        return (*self.own, *self.system)


def known(target: Target, options: Options) -> tuple[KnownHost, ...]:
    """Return the ``known_hosts`` lines with a key for the host ``target``, else the lines for the host's name without
    the port.

    Raises ``Unreachable`` for an invalid configuration, and ``HostError`` for a file that cannot be read.
    """
    server = _server(target, options)
    with _told(server.host):
        found = hostkeys.look_up(server.name, server.portless, server.files, options.shared.known_hosts)
    with_port = tuple(entry for entry in found.entries if not entry.marker)
    return with_port or tuple(entry for entry in found.portless if not entry.marker)


def refuse_revoked(target: Target, options: Options, keys: Sequence[HostKey]) -> None:
    """Raise ``Refused`` if a line of any ``known_hosts`` file revokes one of ``keys`` for the host ``target``."""
    server = _server(target, options)
    names = (server.name, *((server.portless,) if server.portless else ()))
    for path, content in _contents(server, (*server.files, *server.revoking)):
        known_hosts = hostkeys.KnownHosts.parse(path, content)
        for entry in (entry for name in names for entry in known_hosts.lookup(name)):
            revoked = next((key for key in keys if hostkeys.revokes(entry, (key.blob,))), None)
            if revoked and entry.marker == hostkeys.REVOKED:
                raise Refused(
                    target.name,
                    f"the key {revoked} is revoked by {entry.where} and is never trusted; give the host a new key "
                    "(on its console, remove /etc/ssh/ssh_host_* and run `ssh-keygen -A`), and trust the new key",
                )


def replace(target: Target, options: Options, keys: Sequence[HostKey]) -> Replaced:
    """Record exactly ``keys`` for the host ``target``; without keys, the host becomes unknown.

    Raises ``Refused`` before any change if another owner's file or a line for many hosts has a different key, or if one
    of ``keys`` is revoked. Raises ``HostError`` for a file that cannot be read or written.
    """
    server = _server(target, options)
    _refuse_what_cannot_be_written(server)
    refuse_revoked(target, options, keys)
    before = known(target, options)
    _refuse_what_would_stay(server, keys, () if keys else before)
    with _told(server.host):
        first, *others = server.own
        # Old keys are removed before new keys are added, so that a crash never leaves old and new keys trusted.
        changed = [path for path in others if path.exists() and _rewrite(server, path, keys, add=False)]
        if (keys or first.exists()) and _rewrite(server, first, keys, add=True):
            changed.insert(0, first)
    return Replaced(target.name, before, tuple(dict.fromkeys(keys)), tuple(changed))


def _server(target: Target, options: Options) -> _Server:
    endpoint = endpoint_of(target, options)
    name = endpoint.host_key_name
    if not lines.fits(name):
        raise Refused(target.name, f"{name!r} is not a valid name in known_hosts; correct the host's address")
    files = tuple(dict.fromkeys((*endpoint.known_hosts, *endpoint.system_known_hosts)))
    with _told(target.name):
        own = tuple(path for path in files if path in endpoint.known_hosts and not _of_the_system(path))
    system = tuple(path for path in files if path not in own)
    return _Server(target.name, name, endpoint.portless_name, own, system, endpoint.revoking)


def _refuse_what_cannot_be_written(server: _Server) -> None:
    """Raise ``Refused`` unless the user has configured ``known_hosts`` files, and all of them are regular files."""
    hint = "(hostwright_known_hosts in the inventory, or UserKnownHostsFile in ssh_config)"
    if not server.own:
        paths = ", ".join(map(str, server.files)) or "none"
        raise Refused(server.host, f"you have no known_hosts file of your own, only {paths}; set one {hint}")
    for path in server.own:
        if path.exists() and not path.is_file():
            raise Refused(server.host, f"{path} is not a regular file and cannot store keys; set another file {hint}")


def _refuse_what_would_stay(server: _Server, keys: Sequence[HostKey], portless: Sequence[KnownHost]) -> None:
    """Raise ``Refused`` if a line would still have another key for the host after ``keys`` are recorded."""
    for path, content in _contents(server, server.own):
        _edit(server, path, content, keys)
    for path, content in _contents(server, server.system):
        stays = next(iter(lines.contradicting(path, content, server.name, keys)), None)
        if stays:
            raise _stays(server, stays, server.name, "you do not own this file; edit the line yourself")
    for entry in portless:
        if not lines.is_for(entry, server.name):
            raise _stays(server, entry, server.portless, f"{server.name} has this key too; remove that line by hand")


def _stays(server: _Server, entry: KnownHost, whom: str, what: str) -> Refused:
    key = f"{entry.key_type} {entry.fingerprint}"
    return Refused(server.host, f"{entry.where} has the key {key} for {whom}. Nothing was changed, because {what}")


def _edit(server: _Server, path: Path, content: bytes, keys: Sequence[HostKey]) -> lines.Edit:
    edit = lines.without(path, content, server.name, keys)
    if edit.in_the_way:
        first = edit.in_the_way[0]
        raise _stays(
            server,
            first,
            f"{server.name} and others ({first.names})",
            "the line is for several hosts; edit it yourself",
        )
    return edit


def _rewrite(server: _Server, path: Path, keys: Sequence[HostKey], *, add: bool) -> bool:
    real = path.resolve()
    while True:
        with hostkeys.locked(real) as file:
            seen, content = os.fstat(file.fileno()), file.read()
            edit = _edit(server, path, content, keys)
            wanted = lines.having(path, edit, server.name, keys) if add else edit.content
            if wanted == content:
                return False
            if _put(real, wanted, seen):
                return True


def _put(path: Path, content: bytes, seen: os.stat_result) -> bool:
    """Write ``content`` to ``path``, or return ``False`` if the file has changed since ``seen``: ssh writes without a
    lock.
    """
    if not stat.S_ISREG(seen.st_mode):
        raise OSError(errno.EINVAL, "the path is not a regular file", str(path))
    descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as new:
            os.fchmod(descriptor, seen.st_mode & 0o777)
            if (seen.st_uid, seen.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(descriptor, seen.st_uid, seen.st_gid)
            new.write(content)
            new.flush()
            os.fsync(descriptor)
        now = path.stat()
        if not os.path.samestat(now, seen) or (now.st_size, now.st_mtime_ns) != (seen.st_size, seen.st_mtime_ns):
            return False
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)
    sync(path.parent)
    return True


def _of_the_system(path: Path) -> bool:
    real = path.resolve()
    if real.is_relative_to(SYSTEM):
        return True
    return os.geteuid() != 0 and real.exists() and real.stat().st_uid != os.geteuid()


def _contents(server: _Server, paths: Sequence[Path]) -> Iterator[tuple[Path, bytes]]:
    for path in paths:
        with _told(server.host):
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue
        yield path, content


@contextmanager
def _told(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HostError(
            name, f"{error.filename or 'a known_hosts file'} cannot be used: {refused(error, ANOTHER_KNOWN_HOSTS)}"
        ) from error
