"""``RevokedHostKeys``: files of keys that are never right, as text or as OpenSSH's key revocation lists (KRLs)."""

from __future__ import annotations

import base64
import binascii
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from hostwright.transport.identity.certificates import Certificate
from hostwright.transport.identity.keys import HostKey

_MAGIC = b"SSHKRL\n\0"
_ASKING_S = 30.0
_REVOKED = 1  #: ssh-keygen's exit status; 255 is an error of its own


def revoking(paths: Iterable[Path], key: HostKey, certificate: Certificate | None) -> Path | None:
    """The file that revokes a key, its certificate or the authority that signed that.

    Raises ``OSError`` for a file that cannot be read, and ``ValueError`` for one that cannot be understood: nobody
    knows then what it revokes.
    """
    return next((path for path in paths if _revokes(path, key, certificate)), None)


def _revokes(path: Path, key: HostKey, certificate: Certificate | None) -> bool:
    content = path.read_bytes()
    if content.startswith(_MAGIC):
        return _in_krl(path, certificate.line if certificate else key.line)
    blobs = {key.blob, *((certificate.blob, certificate.authority.blob) if certificate else ())}
    return any(_blob(line) in blobs for line in content.split(b"\n"))


def _blob(line: bytes) -> bytes:
    """The key of a line (``type base64 comment``); empty if there is none."""
    fields = line.split(None, 2)
    try:
        return base64.b64decode(fields[1], validate=True) if len(fields) > 1 else b""
    except binascii.Error:
        return b""


def _in_krl(path: Path, line: str) -> bool:
    """Whether OpenSSH finds a key or certificate in its list."""
    with tempfile.NamedTemporaryFile("w", suffix=".pub") as file:
        file.write(f"{line}\n")
        file.flush()
        try:
            ran = subprocess.run(
                ["ssh-keygen", "-Q", "-f", str(path), file.name],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_ASKING_S,
                check=False,
            )
        except FileNotFoundError:
            raise ValueError(
                "it is a KRL, and ssh-keygen, which reads them, is not installed on this machine"
            ) from None
        except subprocess.TimeoutExpired:
            raise ValueError("ssh-keygen did not read it in time") from None
    if ran.returncode not in (0, _REVOKED):
        raise ValueError(f"ssh-keygen cannot read it: {(ran.stderr.strip().splitlines() or ['no reason'])[-1]}")
    return ran.returncode == _REVOKED
