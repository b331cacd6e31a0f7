"""Locks on this machine for hosts that do not answer, and so cannot be locked themselves.

One file per host and inventory, ``set-aside/INVENTORY/HASH.json`` in the state directory, mode 0600. The file has the
same content and expiry as an operator's lock on a host (``locks.OperatorLock``).
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from hostwright.common.command import Command
from hostwright.common.errors import HostwrightError, InputError, Locked
from hostwright.common.input.adapter import adapter
from hostwright.common.places import ANOTHER_STATE, make_folder, place_of, refused, unread, write_whole
from hostwright.plan.host.locks import OperatorLock, forbids
from hostwright.stack.store.artifacts import locked

FOLDER = "set-aside"
CAP_BYTES = 8 * 1024  #: maximum size of a lock file in bytes, ten times the usual size


def put(root: Path, inventory: str | Path, lock: OperatorLock, *, now: datetime, force: bool = False) -> None:
    """Store ``lock`` on this machine, synced to disk. ``root`` is ``journal.state_root()``.

    Raises ``Locked`` if another operator's lock for the host exists that is unexpired at ``now``; ``force`` replaces
    that lock. Raises ``HostwrightError`` if the file cannot be written.
    """
    path = _path(root, inventory, lock.host)
    try:
        make_folder(path.parent)
        with locked(path.parent):
            why_not = "" if force else forbids(_read(path), lock.owner, now)
            if why_not:
                raise Locked(lock.host, why_not)
            write_whole(path, f"{lock.to_json()}\n".encode())
    except OSError as error:
        raise HostwrightError(f"{path}: cannot be written: {refused(error, ANOTHER_STATE)}") from error


def get(root: Path, inventory: str | Path, host: str) -> OperatorLock | None:
    """Return the lock for ``host`` on this machine, expired or not. Raises ``InputError`` for a damaged file."""
    return _read(_path(root, inventory, host))


def take_off(
    root: Path, inventory: str | Path, host: str, *, who: str, now: datetime, force: bool = False
) -> OperatorLock | None:
    """Remove the lock for ``host`` from this machine and return it; ``None`` if no lock exists.

    Raises ``Locked`` for an unexpired lock of an operator other than ``who``, and ``InputError`` for a damaged file.
    With ``force``, removes the lock or the damaged file in any case, and returns ``None`` for a damaged file.
    """
    path = _path(root, inventory, host)
    if not path.exists():
        return None
    try:
        with locked(path.parent):
            lock = _known(path) if force else _read(path)
            why_not = "" if force else forbids(lock, who, now)
            if why_not:
                raise Locked(host, why_not)
            path.unlink(missing_ok=True)
    except OSError as error:
        raise HostwrightError(f"{path}: cannot be removed: {refused(error)}") from error
    return lock


def all_of(root: Path, inventory: str | Path) -> tuple[OperatorLock, ...]:
    """Return the locks on this machine for an inventory's hosts, by host. Raises ``InputError`` for a damaged file."""
    kept = (_read(path) for path in (root / FOLDER / place_of(inventory)).glob("*.json"))
    return tuple(sorted((lock for lock in kept if lock is not None), key=lambda lock: lock.host))


def refusal(root: Path, inventory: str | Path, host: str, now: datetime) -> str:
    """Return why ``host`` must not be changed; empty if this machine has no unexpired lock for the host.

    Raises ``InputError`` for a damaged file.
    """
    lock = get(root, inventory, host)
    if lock is None or lock.expired(now):
        return ""
    return (
        f"set aside on this machine, {lock}; to work on the host, run {Command('unlock', hosts=host)} "
        "(with --force for the lock of another operator)"
    )


def _path(root: Path, inventory: str | Path, host: str) -> Path:
    """Return the path of the lock file for ``host``. The path contains a hash, because host names may be any text."""
    name = hashlib.sha256(host.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return root / FOLDER / place_of(inventory) / f"{name}.json"


def _read(path: Path) -> OperatorLock | None:
    try:
        with path.open("rb") as file:
            return adapter(OperatorLock).validate_json(file.read(CAP_BYTES), strict=True)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot be read: {unread(error)}", str(path)) from error
    except ValidationError as error:
        raise InputError(
            "is a damaged lock of a host; find its owner by the file's time and owner, then run "
            f"{Command('unlock', force=True)} for the host, or delete the file",
            str(path),
        ) from error


def _known(path: Path) -> OperatorLock | None:
    try:
        return _read(path)
    except InputError:
        return None
