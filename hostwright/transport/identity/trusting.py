"""Recording by intent which keys a host has: the old ones in the user's files are replaced by the new ones.

Only the server's name in ``known_hosts`` form (``host``, or ``[host]:port``) is affected: the name that a session is
checked against. Other names of the same machine stay as they are, even on the same line. System-wide files are read but
never written.
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

SYSTEM = Path("/etc/ssh")  #: files here are for all users of this machine


@dataclass(frozen=True, slots=True)
class Replaced:
    """The keys recorded for a host before and now, and the files that changed."""

    host: str
    before: tuple[KnownHost, ...]
    now: tuple[HostKey, ...]
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class _Server:
    """A host's server as ``known_hosts`` files name it, and the files: the user's ``own``, and those of the system."""

    host: str
    name: str
    portless: str  #: its name without the port, if that counts as well
    own: tuple[Path, ...]
    system: tuple[Path, ...]
    revoking: tuple[Path, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        """All relevant files."""
        return (*self.own, *self.system)


def known(target: Target, options: Options) -> tuple[KnownHost, ...]:
    """The lines that give the host a key; if there are none, those for its name without the port.

    Raises ``Unreachable`` for an invalid configuration, and ``HostError`` for a file that cannot be read.
    """
    server = _server(target, options)
    with _told(server.host):
        found = hostkeys.look_up(server.name, server.portless, server.files, options.shared.known_hosts)
    with_port = tuple(entry for entry in found.entries if not entry.marker)
    return with_port or tuple(entry for entry in found.portless if not entry.marker)


def refuse_revoked(target: Target, options: Options, keys: Sequence[HostKey]) -> None:
    """Raise ``Refused`` if a line in any file revokes one of these keys for the host; otherwise raises like
    ``known``."""
    server = _server(target, options)
    names = (server.name, *((server.portless,) if server.portless else ()))
    for path, content in _contents(server, (*server.files, *server.revoking)):
        known_hosts = hostkeys.KnownHosts.parse(path, content)
        for entry in (entry for name in names for entry in known_hosts.lookup(name)):
            revoked = next((key for key in keys if hostkeys.revokes(entry, (key.blob,))), None)
            if revoked and entry.marker == hostkeys.REVOKED:
                raise Refused(
                    target.name,
                    f"the key {revoked} is revoked by {entry.where} and is never trusted; give the host another key "
                    "(remove its /etc/ssh/ssh_host_* and run ssh-keygen -A on its console), and trust that one",
                )


def replace(target: Target, options: Options, keys: Sequence[HostKey]) -> Replaced:
    """Make ``keys`` the only ones that are recorded for the host; without keys, the host becomes unknown.

    Lines that already have one of them stay. Raises ``Refused``, before anything is written, if a file that is not the
    user's own or a line for many hosts gives the host another key, or if a key is revoked; ``HostError`` for a file
    that cannot be read or written.
    """
    server = _server(target, options)
    _refuse_what_cannot_be_written(server)
    refuse_revoked(target, options, keys)
    before = known(target, options)
    _refuse_what_would_stay(server, keys, () if keys else before)
    with _told(server.host):
        first, *others = server.own
        # The new key is written last: a crash before that leaves the host unknown.
        changed = [path for path in others if path.exists() and _rewrite(server, path, keys, add=False)]
        if (keys or first.exists()) and _rewrite(server, first, keys, add=True):
            changed.insert(0, first)
    return Replaced(target.name, before, tuple(dict.fromkeys(keys)), tuple(changed))


def _server(target: Target, options: Options) -> _Server:
    endpoint = endpoint_of(target, options)
    name = endpoint.host_key_name
    if not lines.fits(name):
        raise Refused(target.name, f"{name!r} cannot be a host's name in known_hosts; correct its address")
    files = tuple(dict.fromkeys((*endpoint.known_hosts, *endpoint.system_known_hosts)))
    with _told(target.name):
        own = tuple(path for path in files if path in endpoint.known_hosts and not _of_the_system(path))
    system = tuple(path for path in files if path not in own)
    return _Server(target.name, name, endpoint.portless_name, own, system, endpoint.revoking)


def _refuse_what_cannot_be_written(server: _Server) -> None:
    """Raise unless the user has files of their own, and all of them are regular files (unlike ``/dev/null``)."""
    hint = "(hostwright_known_hosts in the inventory, or UserKnownHostsFile in ssh_config)"
    if not server.own:
        paths = ", ".join(map(str, server.files)) or "none"
        raise Refused(server.host, f"there is no known_hosts file of your own, only {paths}: name one {hint}")
    for path in server.own:
        if path.exists() and not path.is_file():
            raise Refused(server.host, f"{path} is not a regular file and cannot store keys: name another file {hint}")


def _refuse_what_would_stay(server: _Server, keys: Sequence[HostKey], portless: Sequence[KnownHost]) -> None:
    """Raise for the first line that would still give the host another key. Lines in ``portless``, which name it without
    the port, count as well."""
    for path, content in _contents(server, server.own):
        _edit(server, path, content, keys)
    for path, content in _contents(server, server.system):
        stays = next(iter(lines.contradicting(path, content, server.name, keys)), None)
        if stays:
            raise _stays(server, stays, server.name, "the file is not yours alone; change that line there")
    for entry in portless:
        if not lines.is_for(entry, server.name):
            raise _stays(server, entry, server.portless, f"it also counts for {server.name}; take it out by hand")


def _stays(server: _Server, entry: KnownHost, whom: str, what: str) -> Refused:
    key = f"{entry.key_type} {entry.fingerprint}"
    return Refused(server.host, f"{entry.where} gives {whom} the key {key}, and {what}; nothing was changed")


def _edit(server: _Server, path: Path, content: bytes, keys: Sequence[HostKey]) -> lines.Edit:
    edit = lines.without(path, content, server.name, keys)
    if edit.in_the_way:
        first = edit.in_the_way[0]
        raise _stays(
            server,
            first,
            f"{server.name} and others ({first.names})",
            "a line for many is not changed for one; change it by hand",
        )
    return edit


def _rewrite(server: _Server, path: Path, keys: Sequence[HostKey], *, add: bool) -> bool:
    """Replace the file's content; return whether it differed. Concurrent writes by others are not lost."""
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
    """Write a new file beside the old one and rename it, with the old one's mode and owner; but not if the old one
    changed since it was read, because ssh and ssh-keygen write without a lock. Only regular files are replaced."""
    if not stat.S_ISREG(seen.st_mode):
        raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
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
    """Whether this user may not change a file: it is one of the system's, or belongs to somebody else."""
    real = path.resolve()
    if real.is_relative_to(SYSTEM):
        return True
    return os.geteuid() != 0 and real.exists() and real.stat().st_uid != os.geteuid()


def _contents(server: _Server, paths: Sequence[Path]) -> Iterator[tuple[Path, bytes]]:
    """The existing files, each with its content."""
    for path in paths:
        with _told(server.host):
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue
        yield path, content


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Turn errors of files into sentences."""
    try:
        yield
    except OSError as error:
        raise HostError(
            name, f"{error.filename or 'a known_hosts file'} cannot be used: {refused(error, ANOTHER_KNOWN_HOSTS)}"
        ) from error
