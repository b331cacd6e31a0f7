"""Checks whether other users could have placed or changed a file, by the rules of OpenSSH, git and sudo.

A path is trusted if only this user and root own and can write the path, every directory above it, and every symbolic
link to it. A parent directory may be world-writable if it is sticky (``/tmp``). The private group of the owner does not
count as another user. Under ``sudo``, this user is the calling user (``SUDO_UID``), as in git.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

from hostwright.common.errors import InputError
from hostwright.common.text import one_line
from hostwright.common.userpaths import expanded

#: name of the environment variable with the path of the site's directory
SITE_VARIABLE = "HOSTWRIGHT_SITE"
_MOST_LINKS = 40  #: maximum number of symbolic links in a path, as in Linux (path_resolution(7))
_ACL = "system.posix_acl_access"


class NotTrusted(InputError):
    """Code would be loaded from a directory that another user could have changed."""


def in_named_site(folder: Path) -> bool:
    """Return whether ``folder`` is inside the site directory that the environment variable
    ``HOSTWRIGHT_SITE`` names.
    """
    named = os.environ.get(SITE_VARIABLE, "")
    return bool(named) and folder.resolve().is_relative_to(expanded(named).resolve())


def fault_of(path: Path) -> str:
    """Return why another user could have placed or changed ``path``; empty if only this user and root could.

    >>> fault_of(Path("/tmp"))
    '/tmp: others may write to it (mode 1777)'
    """
    try:
        steps = list(_way(path.absolute()))
    except OSError as error:
        return _sentence(str(path), f"cannot be checked: {error.strerror}")
    last = len(steps) - 1
    faults = (_fault(place, found, passed=number < last) for number, (place, found) in enumerate(steps))
    return next(filter(None, faults), "")


def fault_below(root: Path, folders: Collection[str] | None = None) -> str:
    """Return the first fault, as ``fault_of`` does, of ``root`` or a file below ``root``; empty without a fault.

    If ``folders`` is given, only these subfolders are checked.
    """
    if fault := fault_of(root):
        return fault
    seen: set[tuple[int, int]] = set()
    left = [os.fspath(root)] if root.is_dir() else []
    while left:
        folder, only = left.pop(), folders if not seen else None
        try:
            with os.scandir(folder) as entries:
                found = [(entry.name, entry.path, entry.stat(follow_symlinks=False)) for entry in entries]
        except OSError as error:
            return _sentence(folder, f"cannot be checked: {error.strerror}")
        seen.add((0, 0))
        for name, place, status in found:
            is_link = stat.S_ISLNK(status.st_mode) and os.path.exists(place)  # noqa: PTH110 - quick for 10,000 hosts
            inner = os.stat(place) if is_link else status  # noqa: PTH116
            is_folder = stat.S_ISDIR(inner.st_mode)
            if is_folder and only is not None and name not in only:
                continue
            if fault := _fault(place, status) or (fault_of(Path(place)) if is_link else ""):
                return fault
            identity = inner.st_dev, inner.st_ino
            if is_folder and identity not in seen:
                seen.add(identity)
                left.append(place)
    return ""


def _way(path: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield every directory, link and file that the kernel visits when it opens ``path``. Raises ``OSError`` if an
    entry cannot be read, or for too many links.
    """
    here, left, links = "/", list(reversed(path.parts[1:])), 0
    yield here, os.lstat(here)
    while left:
        part = left.pop()
        if part == "..":
            here = os.path.dirname(here)  # noqa: PTH120
            continue
        place = os.path.join(here, part)  # noqa: PTH118
        found = os.lstat(place)
        yield place, found
        if not stat.S_ISLNK(found.st_mode):
            here = place
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(0, "the path has too many symbolic links")
        target = Path(os.readlink(place))  # noqa: PTH115
        if target.is_absolute():
            here = "/"
        left += reversed(target.parts[1:] if target.is_absolute() else target.parts)


def _fault(place: str, found: os.stat_result, *, passed: bool = False) -> str:
    """Return the reason why ``place``, with the owner and mode in ``found``, is not trusted; empty if trusted.
    ``passed`` means that ``place`` is a directory above the checked path.
    """
    if found.st_uid not in _ours():
        return _sentence(place, f"belongs to {_name_of(found.st_uid)}")
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISLNK(found.st_mode) or not (mode & 0o022) or (passed and mode & stat.S_ISVTX):
        return ""
    if mode & 0o002 or not _is_private(found.st_gid) or _has_acl(place):
        return _sentence(place, f"others may write to it (mode {mode:o})")
    return ""


def _sentence(place: str, why: str) -> str:
    return f"{one_line(place)}: {why}"


@cache
def _ours() -> frozenset[int]:
    ours, caller = {0, os.geteuid()}, os.environ.get("SUDO_UID", "")
    if os.geteuid() == 0 and caller.isascii() and caller.isdigit():
        ours.add(int(caller))
    return frozenset(ours)


def _name_of(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


@cache
def _is_private(gid: int) -> bool:
    """Return whether the group ``gid`` has this user's name and no other member, as USERGROUPS_ENAB in login.defs
    creates.
    """
    try:
        group = grp.getgrgid(gid)
        user = pwd.getpwnam(group.gr_name)
    except KeyError:
        return False
    return user.pw_uid in _ours() and user.pw_gid == gid and set(group.gr_mem) <= {user.pw_name}


def _has_acl(place: str) -> bool:
    try:
        return bool(os.getxattr(place, _ACL))
    except (OSError, AttributeError):  # The path has no ACL, or macOS lacks ``getxattr``.
        return False
