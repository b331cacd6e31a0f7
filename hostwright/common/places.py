"""Where runs are kept on this machine, their file names, how a file is written there, and what to do where it cannot
be."""

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
BEFORE, AFTER = "before", "after"  #: the facts of the first probe of a host in a run, and of the latest one
PRIVATE_DIR, PRIVATE_FILE = 0o700, 0o600
SHARED_DIR, SHARED_FILE = 0o2770, 0o660  #: in a directory that its setgid bit shares with a group
RUN_SETS = ("failed", "locked", "unreachable", "changed", "pending", "untouched", "stopped")  #: hosts by their result
#: a set of a named run, as it stands in a selection of hosts
OF_A_RUN = re.compile(rf"@?(?P<set>{'|'.join(RUN_SETS)}):(?P<run>[a-z0-9][a-z0-9-]*)")

_PLAIN = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,99}")
_MAX_SLUG = 60  #: characters kept of a name with special characters, for readers; the hash beside them makes it unique

_FREE = "free some space there"
_OWN = "change its owner or mode"
#: what mends it there, and whether another place does as well
_CURES: dict[int, tuple[str, bool]] = {
    errno.ENOSPC: (_FREE, True),
    errno.EDQUOT: (f"{_FREE}, or ask for a larger quota", True),
    errno.EROFS: ("mount it writable", True),
    errno.EACCES: (_OWN, True),
    errno.EPERM: (_OWN, True),
    errno.EISDIR: ("it is a directory: name a file", False),
    errno.ENOTDIR: ("what should be its directory is a file", True),
    errno.ENOENT: ("there is no such directory: make it first", True),
    errno.EMFILE: ("raise the limit of open files (`ulimit -n 4096`), or take fewer hosts at a time", False),
    errno.ENFILE: ("too many files are open on this machine: take fewer hosts at a time", False),
    errno.ENOMEM: ("free some memory, or take fewer hosts at a time", False),
}
ANOTHER_STATE = f"set {STATE_VARIABLE} to a directory elsewhere"  #: what mends it for all that is kept there
ANOTHER_FILE = "name another file"


def state_root() -> Path:
    """The directory with everything that Hostwright records on this machine; it need not exist yet."""
    named = os.environ.get(STATE_VARIABLE, "")
    if named:
        return Path(named).absolute()
    base = os.environ.get("XDG_STATE_HOME", "")
    if Path(base).is_absolute():  # the XDG specification: a relative path is to be ignored
        return Path(base) / "hostwright"
    try:
        return Path.home() / ".local" / "state" / "hostwright"
    except RuntimeError as error:
        raise InputError(
            "there is no home directory: set this to a directory for the records of runs", STATE_VARIABLE
        ) from error


def runs_dir(root: Path) -> Path:
    """The directory of all runs."""
    return root / "runs"


def place_of(inventory: str | Path) -> str:
    """A hash of an inventory's path: equal for every way of writing the same path.

    In a shared state directory it is the path within the site, so that it is equal for every operator's clone.
    """
    path = Path(os.path.realpath(inventory))
    site = next((above for above in path.parents if (above / SITE_FILE).is_file()), None)
    if site and is_shared(state_root()):
        path = path.relative_to(site)
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:32]


def facts_file(host: str, when: str) -> str:
    """The name of a host's facts file within the run's directory. A host's name may be any text of the inventory."""
    return f"{FACTS}/{plain_name(host)}.{when}.json.gz"


def is_shared(folder: Path) -> bool:
    """Whether a directory is shared with its group: ``chmod 2770``. One that everybody may write to is not."""
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return bool(mode & stat.S_ISGID and mode & stat.S_IWGRP and not mode & stat.S_IWOTH)


def file_mode(folder: Path) -> int:
    """The mode of a new file in a directory: for its group where it is shared, else for this user alone."""
    return SHARED_FILE if is_shared(folder) else PRIVATE_FILE


def make_folder(folder: Path, *, exist_ok: bool = True) -> None:
    """Make a directory, and those above it that are missing: for the group in a shared one, else for this user alone.
    Raises ``OSError``."""
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
    """Write a file whole or not at all: beside its place, then renamed. Its folder must exist. Raises ``OSError``.

    ``mode`` is exact whatever the umask is; without one it is ``file_mode``. What is no ordinary file (``/dev/stdout``,
    a pipe, a link) stays and is written to.
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
    """Wait until a file, or the names in a folder, are on the disk. Raises ``OSError``."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def plain_name(name: str) -> str:
    """A file name for any text, different for different texts even on a case-insensitive file system."""
    if _PLAIN.fullmatch(name):
        return name
    slug = re.sub(r"[^a-z0-9_-]+", "-", name.lower())[:_MAX_SLUG].strip("-")
    return f"{slug}+{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def to_blame(error: OSError) -> bool:
    """Whether it is this machine that refuses something, whatever was asked of it; not a name that is wrong."""
    return error.errno in _CURES.keys() - {errno.EISDIR, errno.ENOTDIR, errno.ENOENT}


def refused(error: OSError, instead: str = "") -> str:
    """Why something cannot be written, and what to do; ``instead`` is another way, where the place is to blame.

    >>> refused(OSError(errno.ENOSPC, "No space left on device"), ANOTHER_FILE)
    'No space left on device: free some space there, or name another file'
    """
    cure, elsewhere = _CURES.get(error.errno or 0, ("", False))
    why = str(error.strerror or error)
    return why + (f": {cure}" if cure else "") + (f", or {instead}" if cure and elsewhere and instead else "")


def unread(error: OSError) -> str:
    """Why something cannot be read, and what to do.

    >>> unread(PermissionError(errno.EACCES, "Permission denied"))
    'Permission denied: change its owner or mode'
    """
    cure = {errno.EACCES: _OWN, errno.EPERM: _OWN, errno.EISDIR: "name a file in it"}.get(error.errno or 0, "")
    return str(error.strerror or error) + (f": {cure}" if cure else "")
