"""Records of hosts that still use the host key from their seed (the installer's files). Others may have read this key.

After an interrupted installation, the host's next rebuild replaces this key.
"""

from __future__ import annotations

from pathlib import Path

from hostwright.common.errors import HostError
from hostwright.common.places import ANOTHER_STATE, make_folder, plain_name, refused, state_root, write_whole
from hostwright.transport.identity.keys import HostKey

#: subdirectory of the state directory for public keys from seeds, one file per host
FOLDER = Path("seeds", "given")


def remember(host: str, seeded: HostKey) -> None:
    """Record ``seeded``, the host key in the seed of ``host``. Raises ``HostError`` if the record cannot be written."""
    file = _file(host)
    try:
        make_folder(file.parent)
        write_whole(file, f"{seeded.line}\n".encode())
    except OSError as error:
        sentence = f"{error.filename or file} cannot be written: {refused(error, ANOTHER_STATE)}"
        raise HostError(host, sentence) from error


def recall(host: str) -> HostKey | None:
    """Host key in the last seed of ``host``; ``None`` without a readable record."""
    try:
        return HostKey.parse(_file(host).read_text("ascii"))
    except (OSError, ValueError):
        return None


def forget(host: str) -> None:
    """Delete the record of ``host``."""
    _file(host).unlink(missing_ok=True)


def _file(host: str) -> Path:
    return state_root() / FOLDER / plain_name(host)
