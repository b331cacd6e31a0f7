"""Where run records are stored on this machine, how files are written there, and advice for failed writes."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import tempfile
from pathlib import Path

from hostwright.common.errors import InputError

STATE_VARIABLE = "HOSTWRIGHT_STATE"
SITE_FILE = "hostwright.toml"  #: a site's settings
JOURNAL, FACTS = "journal.jsonl", "facts"
BEFORE, AFTER = "before", "after"  #: facts from the first probe of a host in a run, and from the latest
PRIVATE_DIR, PRIVATE_FILE = 0o700, 0o600
SHARED_DIR, SHARED_FILE = 0o2770, 0o660  #: modes in a directory that is shared with a group (setgid bit)
RUN_SETS = (
    "failed",
    "locked",
    "unreachable",
    "changed",
    "pending",
    "untouched",
    "stopped",
)  #: names of the sets of hosts by result
#: pattern of a set of a named run in ``--hosts``, such as ``@failed:RUN``
OF_A_RUN = re.compile(rf"@?(?P<set>{'|'.join(RUN_SETS)}):(?P<run>[a-z0-9][a-z0-9-]*)")

_PLAIN = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,99}")
_MAX_SLUG = 60  #: maximum length of the readable part of a name with special characters; a hash makes the name unique

_FREE = "free some space there"
_OWN = "change its owner or mode"
#: error number → advice, and whether another location helps too
_CURES: dict[int, tuple[str, bool]] = {
    errno.ENOSPC: (_FREE, True),
    errno.EDQUOT: (f"{_FREE}, or ask for a larger quota", True),
    errno.EROFS: ("mount it writable", True),
    errno.EACCES: (_OWN, True),
    errno.EPERM: (_OWN, True),
    errno.EISDIR: ("name a file", False),
    errno.ENOTDIR: ("move the file that is in the way", True),
    errno.ENOENT: ("create the directory first", True),
    errno.EMFILE: ("raise the limit of open files (`ulimit -n 4096`), or take fewer hosts at a time", False),
    errno.ENFILE: ("close files on this machine, or take fewer hosts at a time", False),
    errno.ENOMEM: ("free some memory, or take fewer hosts at a time", False),
}
ANOTHER_STATE = f"set {STATE_VARIABLE} to a directory elsewhere"  #: advice for files in the state directory
ANOTHER_FILE = "name another file"


def state_root() -> Path:
    """Return the directory of everything that Hostwright records on this machine. It may not exist yet."""
    named = os.environ.get(STATE_VARIABLE, "")
    if named:
        return Path(named).absolute()
    base = os.environ.get("XDG_STATE_HOME", "")
    if Path(base).is_absolute():  # XDG specification: ignore a relative path
        return Path(base) / "hostwright"
    try:
        return Path.home() / ".local" / "state" / "hostwright"
    except RuntimeError as error:
        raise InputError(
            "this user has no home directory; set this variable to a directory for run records", STATE_VARIABLE
        ) from error


def runs_dir(root: Path) -> Path:
    """Return the directory of all runs."""
    return root / "runs"


def place_of(inventory: str | Path) -> str:
    """Return a hash of an inventory's path, equal for every spelling of the path.

    In a shared state directory it is the hash of the path within the site, so that it is equal for every operator's
    clone.
    """
    path = Path(os.path.realpath(inventory))
    site = next((above for above in path.parents if (above / SITE_FILE).is_file()), None)
    if site and is_shared(state_root()):
        path = path.relative_to(site)
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:32]


def facts_file(host: str, when: str) -> str:
    """Return the path of a host's facts file within the directory of a run. The host's name may be any text."""
    return f"{FACTS}/{plain_name(host)}.{when}.json.gz"


def is_shared(folder: Path) -> bool:
    """Whether a directory is shared with its group (``chmod 2770``). A world-writable directory is not."""
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return bool(mode & stat.S_ISGID and mode & stat.S_IWGRP and not mode & stat.S_IWOTH)


def file_mode(folder: Path) -> int:
    """Return the mode of a new file in a directory: for the group if the directory is shared, else for this user
    only."""
    return SHARED_FILE if is_shared(folder) else PRIVATE_FILE


def make_folder(folder: Path, *, exist_ok: bool = True) -> None:
    """Create a directory and its missing parents, for the group below a shared directory, else for this user only.

    Raises ``OSError``.
    """
    for place in (*reversed(folder.parents), folder):
        if place == folder or not place.exists():
            try:
                place.mkdir(mode=PRIVATE_DIR)
            except FileExistsError:
                if place == folder and not (exist_ok and place.is_dir()):
                    raise
                continue
            if is_shared(place.parent):
                place.chmod(SHARED_DIR)


def write_whole(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file atomically, through a temporary file in the same directory, which must exist. Raises ``OSError``.

    ``mode`` is set whatever the umask is; the default is ``file_mode``. If the path is not a regular file
    (``/dev/stdout``, a pipe, a link), the content is written to it directly.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        path.write_bytes(content)
        return
    handle, beside = tempfile.mkstemp(prefix=".", suffix=".new", dir=path.absolute().parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(handle, file_mode(path.absolute().parent) if mode is None else mode)
            file.flush()
            os.fsync(handle)
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    sync(path.absolute().parent)


def sync(path: Path) -> None:
    """Flush a file, or the entries of a directory, to the disk. Raises ``OSError``."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def plain_name(name: str) -> str:
    """Return a file name for any text, unique even on a case-insensitive file system."""
    if _PLAIN.fullmatch(name):
        return name
    slug = re.sub(r"[^a-z0-9_-]+", "-", name.lower())[:_MAX_SLUG].strip("-")
    return f"{slug}+{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def to_blame(error: OSError) -> bool:
    """Whether the error comes from this machine (space, permissions, limits) and not from a wrong path."""
    return error.errno in _CURES.keys() - {errno.EISDIR, errno.ENOTDIR, errno.ENOENT}


def refused(error: OSError, instead: str = "") -> str:
    """Explain why a write failed, and what to do. ``instead`` is further advice, if another location would help.

    >>> refused(OSError(errno.ENOSPC, "No space left on device"), ANOTHER_FILE)
    'No space left on device; free some space there, or name another file'
    """
    cure, elsewhere = _CURES.get(error.errno or 0, ("", False))
    why = str(error.strerror or error)
    return why + (f"; {cure}" if cure else "") + (f", or {instead}" if cure and elsewhere and instead else "")


def unread(error: OSError) -> str:
    """Explain why a read failed, and what to do.

    >>> unread(PermissionError(errno.EACCES, "Permission denied"))
    'Permission denied; change its owner or mode'
    """
    cure = {errno.EACCES: _OWN, errno.EPERM: _OWN, errno.EISDIR: "name a file in it"}.get(error.errno or 0, "")
    return str(error.strerror or error) + (f"; {cure}" if cure else "")
