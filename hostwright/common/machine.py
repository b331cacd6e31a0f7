"""What this machine refuses (a full disk, a file of somebody else's), in words that say what to do now."""

from __future__ import annotations

import errno

from hostwright.common.places import STATE_VARIABLE

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
