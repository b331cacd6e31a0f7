"""Verifies the host key of a server with OpenSSH's rules, in OpenSSH's order."""

from __future__ import annotations

import base64
import binascii
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hostwright.common.command import Command
from hostwright.common.errors import Unreachable
from hostwright.common.quoting import sh
from hostwright.transport.identity.certificates import Certificate
from hostwright.transport.identity.hostkeys import (
    AUTHORITY,
    REVOKED,
    HostKeyMismatch,
    Known,
    KnownHost,
    contradicting,
    has,
    revokes,
)
from hostwright.transport.identity.keys import HostKey
from hostwright.transport.identity.negotiating import key_type
from hostwright.transport.routing.sshconfig import Endpoint

_MAGIC = b"SSHKRL\n\0"
_ASKING_S = 30.0
_REVOKED = 1  #: exit status of ``ssh-keygen -Q`` for a revoked key


def revoking(paths: Iterable[Path], key: HostKey, certificate: Certificate | None) -> Path | None:
    """Return the first of the files ``paths`` that revokes the key, the certificate or its authority.

    Raises ``OSError`` for a file that cannot be read, and ``ValueError`` for a file that cannot be parsed.
    """
    return next((path for path in paths if _revokes(path, key, certificate)), None)


def _revokes(path: Path, key: HostKey, certificate: Certificate | None) -> bool:
    content = path.read_bytes()
    if content.startswith(_MAGIC):
        return _in_krl(path, certificate.line if certificate else key.line)
    blobs = {key.blob, *((certificate.blob, certificate.authority.blob) if certificate else ())}
    return any(_blob(line) in blobs for line in content.split(b"\n"))


def _blob(line: bytes) -> bytes:
    fields = line.split(None, 2)
    try:
        return base64.b64decode(fields[1], validate=True) if len(fields) > 1 else b""
    except binascii.Error:
        return b""


def _in_krl(path: Path, line: str) -> bool:
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
                "the file is a KRL, which needs ssh-keygen on this machine; run `apt install openssh-client`"
            ) from None
        except subprocess.TimeoutExpired:
            raise ValueError("ssh-keygen did not read the file within its time limit") from None
    if ran.returncode not in (0, _REVOKED):
        raise ValueError(f"ssh-keygen cannot read the file: {(ran.stderr.strip().splitlines() or ['no reason'])[-1]}")
    return ran.returncode == _REVOKED


@dataclass(slots=True)
class Judgement:
    """The verification of the key that one server presented. ``reasons`` explain why a certificate was rejected."""

    host: str
    endpoint: Endpoint
    known: Known
    key: HostKey
    certificate: Certificate | None = None
    jump: bool = False
    reasons: list[str] = field(default_factory=list)

    @property
    def place(self) -> str:
        """The server's address and port, for messages."""
        return f"{self.endpoint.address}:{self.endpoint.port}"

    def accepted(self) -> bool:
        """Return whether the presented key is known or certified; ``False`` for a new key.

        Raises ``HostKeyMismatch`` if the key is revoked or differs from the recorded key, and ``Unreachable`` if the
        key cannot be verified.
        """
        self._refuse_listed()
        self._refuse_short()
        levels = [self.known.entries, *([self.known.portless] if self.known.portless else [])]
        return self._judged(levels, self.certificate, top=True)

    def _judged(
        self, levels: Sequence[Sequence[KnownHost]], certificate: Certificate | None, *, top: bool = False
    ) -> bool:
        entries, *portless = levels
        self._refuse_revoked((*entries, *(self.known.others if top else ())))
        if certificate:
            if self._certified(entries, certificate):
                return True
            other = not has(entries, certificate.authority.blob, AUTHORITY)
            if other and portless and self._judged(portless, certificate):
                return True
            return self._judged(levels, None, top=top)
        if not self._permitted():
            return False
        if has(entries, self.key.blob):
            return True
        expected = contradicting(entries, self.key.key_type)
        if expected and top:
            raise self._changed(expected)
        return bool(not expected and portless and self._judged(portless, None))

    def _certified(self, entries: Sequence[KnownHost], certificate: Certificate) -> bool:
        if not has(entries, certificate.authority.blob, AUTHORITY):
            if any(entry.marker == AUTHORITY for entry in entries):
                self.reasons.append(f"its certificate is signed by another authority, {certificate.authority}")
            return False
        reason = certificate.unfit(self.endpoint.principal, self.endpoint.trust.ca_algorithms, time.time())
        if reason:
            self.reasons.append(f"its certificate is rejected: {reason}")
        return not reason

    def _permitted(self) -> bool:
        if any(key_type(name) == self.key.key_type for name in self.endpoint.trust.algorithms):
            return True
        self.reasons.append(f"HostKeyAlgorithms does not allow {self.key.key_type}")
        return False

    def _refuse_listed(self) -> None:
        try:
            path = revoking(self.endpoint.trust.revoked, self.key, self.certificate)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            names = ", ".join(map(str, self.endpoint.trust.revoked))
            raise Unreachable(
                self.host, f"the list of revoked host keys '{names}' (RevokedHostKeys) cannot be read: {why}"
            ) from error
        if path:
            raise self._revoked(str(path))

    def _refuse_revoked(self, entries: Sequence[KnownHost]) -> None:
        blobs = (self.key.blob, *((self.certificate.authority.blob,) if self.certificate else ()))
        for entry in entries:
            if entry.marker == REVOKED and revokes(entry, blobs):
                raise self._revoked(entry.where)

    def _refuse_short(self) -> None:
        bits = self.key.rsa_bits
        if bits and bits < self.endpoint.trust.rsa_bits:
            wanted = self.endpoint.trust.rsa_bits
            raise Unreachable(
                self.host,
                f"{self.place} presents an RSA key of {bits} bits, but RequiredRSASize in ssh_config is {wanted}; "
                "generate a longer key on the host",
            )

    def _revoked(self, where: str) -> HostKeyMismatch:
        signed = f" (this key, or its authority {self.certificate.authority})" if self.certificate else ""
        sentence = f"{self.place} presents the key {self.key}, which {where} revokes{signed}"
        return HostKeyMismatch(self.host, sentence, offered=self.key, known=self.known.entries)

    def _changed(self, expected: KnownHost) -> HostKeyMismatch:
        name = self.known.name
        way = sh("ssh-keygen -R %s -f %s", name, expected.path) if self.jump else Command("trust", hosts=self.host)
        also = "".join(f"; {reason}" for reason in dict.fromkeys(self.reasons))
        return HostKeyMismatch(
            self.host,
            f"the host key of {self.place} changed: it presents {self.key}, but {expected.where} has "
            f"{expected.key_type} {expected.fingerprint}{also}. If the host was reinstalled, compare the new "
            f"fingerprint on its console, then run: {way}; otherwise this may be a man-in-the-middle attack",
            offered=self.key,
            known=self.known.entries,
            lead="" if self.jump else "trust",
        )
