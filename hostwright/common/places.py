"""Paths of Hostwright's records on this machine, writing of files, and advice after failed reads and writes."""

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
SITE_FILE = "hostwright.toml"
JOURNAL, FACTS = "journal.jsonl", "facts"
#: words in the names of fact files: for the first probe of a host, and for the latest
BEFORE, AFTER = "before", "after"
PRIVATE_DIR, PRIVATE_FILE = 0o700, 0o600
#: modes of directories and files that a group shares (setgid bit)
SHARED_DIR, SHARED_FILE = 0o2770, 0o660
RUN_SETS = (
    "failed",
    "locked",
    "unreachable",
    "changed",
    "pending",
    "untouched",
    "stopped",
)  #: names of the sets of hosts with a certain result in a run
#: pattern of a ``--hosts`` term for the result in a named run: ``@failed:RUN``
OF_A_RUN = re.compile(rf"@?(?P<set>{'|'.join(RUN_SETS)}):(?P<run>[a-z0-9][a-z0-9-]*)")

_PLAIN = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,99}")
#: maximum number of characters of the readable part of a file name
_MAX_SLUG = 60

_FREE = "free some space there"
_OWN = "change its owner or mode"
#: advice for each error number, and whether writing to another path would also help
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
ANOTHER_STATE = f"set {STATE_VARIABLE} to a directory elsewhere"
ANOTHER_FILE = "name another file"


def state_root() -> Path:
    """Return the directory of all of Hostwright's records on this machine. The directory may not exist yet."""
    named = os.environ.get(STATE_VARIABLE, "")
    if named:
        return Path(named).absolute()
    base = os.environ.get("XDG_STATE_HOME", "")
    if Path(base).is_absolute():  # The XDG specification requires that relative paths are ignored.
        return Path(base) / "hostwright"
    try:
        return Path.home() / ".local" / "state" / "hostwright"
    except RuntimeError as error:
        raise InputError(
            "this user has no home directory; set this variable to a directory for run records", STATE_VARIABLE
        ) from error


def runs_dir(root: Path) -> Path:
    """Return the directory in the state directory ``root`` that contains one folder for each run."""
    return root / "runs"


def place_of(inventory: str | Path) -> str:
    """Return a hash of an inventory's path, which identifies the inventory in records.

    In a shared state directory, the path is relative to the site, so that all clones of the site get the same hash.
    """
    path = Path(os.path.realpath(inventory))
    site = next((above for above in path.parents if (above / SITE_FILE).is_file()), None)
    if site and is_shared(state_root()):
        path = path.relative_to(site)
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:32]


def facts_file(host: str, when: str) -> str:
    """Return the path of the file with the facts (probe results) of ``host``, relative to the folder of a run."""
    return f"{FACTS}/{plain_name(host)}.{when}.json.gz"


def is_shared(folder: Path) -> bool:
    """Return whether ``folder`` is shared with its group (mode 2770)."""
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return bool(mode & stat.S_ISGID and mode & stat.S_IWGRP and not mode & stat.S_IWOTH)


def file_mode(folder: Path) -> int:
    """Return the mode for a new file in ``folder``: readable by the group if the folder is shared, else only by this
    user.
    """
    return SHARED_FILE if is_shared(folder) else PRIVATE_FILE


def make_folder(folder: Path, *, exist_ok: bool = True) -> None:
    """Create the directory ``folder`` and its missing parents. Inside a shared directory, new directories are shared,
    too.

    Raises ``OSError`` if a directory cannot be created.
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
    """Write ``content`` to ``path`` atomically, by renaming a temporary file in the same directory.

    The file gets exactly ``mode``, regardless of the umask; the default is the result of ``file_mode``. If the path is
    not a regular file (``/dev/stdout``, a pipe, a link), the content is written directly. Raises ``OSError`` if the
    file cannot be written.
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
    """Flush the file ``path``, or a directory's list of files, to the disk. Raises ``OSError`` if this fails."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def plain_name(name: str) -> str:
    """Return a file name for ``name``. Different names give different file names, even if case is ignored."""
    if _PLAIN.fullmatch(name):
        return name
    slug = re.sub(r"[^a-z0-9_-]+", "-", name.lower())[:_MAX_SLUG].strip("-")
    return f"{slug}+{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def to_blame(error: OSError) -> bool:
    """Return whether the cause of ``error`` is this machine (space, permissions, limits) rather than a wrong path."""
    return error.errno in _CURES.keys() - {errno.EISDIR, errno.ENOTDIR, errno.ENOENT}


def refused(error: OSError, instead: str = "") -> str:
    """Explain why a write failed with ``error``, and what to do.

    ``instead`` is advice that is added if another path would help.

    >>> refused(OSError(errno.ENOSPC, "No space left on device"), ANOTHER_FILE)
    'No space left on device; free some space there, or name another file'
    """
    cure, elsewhere = _CURES.get(error.errno or 0, ("", False))
    why = str(error.strerror or error)
    return why + (f"; {cure}" if cure else "") + (f", or {instead}" if cure and elsewhere and instead else "")


def unread(error: OSError) -> str:
    """Explain why reading a file failed with ``error``, and what to do.

    >>> unread(PermissionError(errno.EACCES, "Permission denied"))
    'Permission denied; change its owner or mode'
    """
    cure = {errno.EACCES: _OWN, errno.EPERM: _OWN, errno.EISDIR: "name a file in it"}.get(error.errno or 0, "")
    return str(error.strerror or error) + (f"; {cure}" if cure else "")
