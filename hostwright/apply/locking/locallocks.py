"""Locks of hosts that do not answer, and so cannot carry them: they are kept on this machine.

One file a host and inventory, ``set-aside/INVENTORY/HASH.json`` in the state directory, mode 0600; it appears whole or
not at all. It says what an operator's lock on a host says (``locks.OperatorLock``). Its time ends like that one's.
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
CAP_BYTES = 8 * 1024  #: ten times what our own files hold


def put(root: Path, inventory: str | Path, lock: OperatorLock, *, now: datetime, force: bool = False) -> None:
    """Keep a lock for ``lock.host``; ``root`` is ``journal.state_root()``. When this returns it is on the disk.

    Raises ``Locked`` where somebody else's lock is there and has not expired ``now`` (``force``: replaces it all the
    same), ``HostwrightError`` when it cannot be written.
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
    """The lock that is kept here for a host, expired or not. Raises ``InputError`` for a file that is damaged."""
    return _read(_path(root, inventory, host))


def take_off(
    root: Path, inventory: str | Path, host: str, *, who: str, now: datetime, force: bool = False
) -> OperatorLock | None:
    """Take a host's lock off this machine, and be what it was; ``None`` where there was none.

    Raises ``Locked`` for somebody else's that has not expired, and ``InputError`` for a file that is damaged;
    ``force`` takes both away, and is ``None`` for the damaged one.
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
    """The locks that are kept here for an inventory's hosts, by host. Raises ``InputError`` for a damaged file."""
    kept = (_read(path) for path in (root / FOLDER / place_of(inventory)).glob("*.json"))
    return tuple(sorted((lock for lock in kept if lock is not None), key=lambda lock: lock.host))


def refusal(root: Path, inventory: str | Path, host: str, now: datetime) -> str:
    """Why a host that is set aside must not be changed; empty when nothing forbids it. Raises ``InputError``."""
    lock = get(root, inventory, host)
    if lock is None or lock.expired(now):
        return ""
    return (
        f"set aside on this machine, {lock}. To work on it, take the lock off: {Command('unlock', hosts=host)} "
        "(somebody else's: --force)"
    )


def _path(root: Path, inventory: str | Path, host: str) -> Path:
    """A host's name may be any text: its hash is a file name everywhere."""
    name = hashlib.sha256(host.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return root / FOLDER / place_of(inventory) / f"{name}.json"


def _read(path: Path) -> OperatorLock | None:
    """The lock in a file; ``None`` where there is no file. Raises ``InputError``."""
    try:
        with path.open("rb") as file:
            return adapter(OperatorLock).validate_json(file.read(CAP_BYTES), strict=True)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot be read: {unread(error)}", str(path)) from error
    except ValidationError as error:
        raise InputError(
            "is a lock on a host and is damaged: find out whose it is by its time and owner, then remove it with "
            f"{Command('unlock', force=True)} for the host that is meant, or delete the file",
            str(path),
        ) from error


def _known(path: Path) -> OperatorLock | None:
    try:
        return _read(path)
    except InputError:
        return None
