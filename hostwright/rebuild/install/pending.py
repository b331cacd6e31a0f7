"""Hosts whose key is still the one of a seed: noted before the seed is served, until the host has a key of its own.

A run that is killed in between leaves the note, and the next rebuild of the host finishes what it began.
"""

from __future__ import annotations

from pathlib import Path

from hostwright.common.errors import HostError
from hostwright.common.places import ANOTHER_STATE, make_folder, plain_name, refused, state_root, write_whole
from hostwright.transport.identity.keys import HostKey

FOLDER = Path("seeds", "given")  #: below the state directory; the public key that each host was given


def remember(host: str, seeded: HostKey) -> None:
    """Note that a host is given this key. Raises ``HostError`` where that cannot be written."""
    file = _file(host)
    try:
        make_folder(file.parent)
        write_whole(file, f"{seeded.line}\n".encode())
    except OSError as error:
        sentence = f"{error.filename or file} cannot be written: {refused(error, ANOTHER_STATE)}"
        raise HostError(host, sentence) from error


def recall(host: str) -> HostKey | None:
    """The key that a host was given, and may still have; ``None`` for none, or for a note that cannot be read."""
    try:
        return HostKey.parse(_file(host).read_text("ascii"))
    except (OSError, ValueError):
        return None


def forget(host: str) -> None:
    """The host has a key of its own."""
    _file(host).unlink(missing_ok=True)


def _file(host: str) -> Path:
    return state_root() / FOLDER / plain_name(host)
