"""Where runs are kept on this machine, their file names, how a file is written there, and what to do where it cannot
be."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import tempfile
from pathlib import Path

from hostwright.common.errors import InputError

STATE_VARIABLE = "HOSTWRIGHT_STATE"
JOURNAL, FACTS = "journal.jsonl", "facts"
BEFORE, AFTER = "before", "after"  #: the facts of the first probe of a host in a run, and of the latest one
PRIVATE_DIR, PRIVATE_FILE = 0o700, 0o600
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
    """A hash of an inventory's path: equal for every way of writing the same path."""
    return hashlib.sha256(os.fsencode(os.path.realpath(inventory))).hexdigest()[:32]


def facts_file(host: str, when: str) -> str:
    """The name of a host's facts file within the run's directory. A host's name may be any text of the inventory."""
    return f"{FACTS}/{plain_name(host)}.{when}.json.gz"


def make_private(folder: Path) -> None:
    """Make a directory, and those above it that are missing, for this user alone. Raises ``OSError``."""
    for place in (*reversed(folder.parents), folder):
        if not place.exists():
            place.mkdir(mode=PRIVATE_DIR, exist_ok=True)


def write_whole(path: Path, content: bytes, mode: int = PRIVATE_FILE) -> None:
    """Write a file whole or not at all: beside its place, then renamed. Its folder must exist. Raises ``OSError``.

    ``mode`` is exact whatever the umask is. What is no ordinary file (``/dev/stdout``, a pipe, a link) stays and is
    written to.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        path.write_bytes(content)
        return
    handle, beside = tempfile.mkstemp(prefix=".", suffix=".new", dir=path.absolute().parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(handle, mode)
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
