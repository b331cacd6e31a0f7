"""Sends a value without its secrets to another process, and the secrets separately, encrypted for that process.

So the scheduler, its debug logs and its status pages cannot show secrets.
"""

from __future__ import annotations

import io
import json
import pickle
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from hostwright.apply.journal.redaction import MIN_INLINE
from hostwright.common.errors import HostError
from hostwright.common.secret import Secret

_KEY_BYTES = 32  #: length in bytes of an X25519 key, and of the key derived from it
_NONCE = bytes(12)  #: constant nonce, which is safe because each key encrypts only one message
_WITHHELD, _EMPTY, _TEXT = "withheld", "empty", "text"


@dataclass(frozen=True, slots=True)
class Sealed:
    """A pickled value in which numbers replace the secrets."""

    body: bytes = field(repr=False)


class Withheld(Secret):
    """The placeholder for a secret that was not sent, because the work does not need it."""

    def __init__(self, host: str) -> None:
        super().__init__("")
        object.__setattr__(self, "_host", host)

    __slots__ = ("_host",)
    _host: str

    def reveal(self) -> str:
        """Raise ``HostError``, because the secret was not sent to this machine."""
        raise HostError(self._host, "a required secret was not sent to the worker; this is a bug in Hostwright")

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


class _Sealer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, needed: Callable[[Secret], bool], hidden: Iterable[str]):
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._needed = needed
        self._hidden = tuple(text for text in hidden if len(text) >= MIN_INLINE)
        self.texts: list[str] = []

    def persistent_id(self, value: Any) -> Any:
        """Replace a secret, or a text with a secret, by a number. A secret that is not needed becomes a fixed mark."""
        if type(value) is str:
            within = self._hidden and any(text in value for text in self._hidden)
            return (_TEXT, self._number(value)) if within else None
        if not isinstance(value, Secret):
            return None
        if not value:
            return _EMPTY
        return self._number(value.reveal()) if self._needed(value) else _WITHHELD

    def _number(self, text: str) -> int:
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text)


class _Opener(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, texts: tuple[str, ...], host: str):
        super().__init__(file)
        self._texts, self._host = texts, host

    def persistent_load(self, number: Any) -> Secret | str:
        if isinstance(number, tuple):
            return self._texts[number[1]]
        if number == _WITHHELD:
            return Withheld(self._host)
        return Secret("" if number == _EMPTY else self._texts[number])


def seal(value: Any, needed: Callable[[Secret], bool], hidden: Iterable[str] = ()) -> tuple[Sealed, tuple[str, ...]]:
    """Return ``value`` with its secrets replaced, and the texts of those secrets for which ``needed`` is true.

    Texts in the value that contain one of the ``hidden`` texts are also replaced. Commands that print secrets run on
    this machine. Raises ``HostError`` if such a command prints nothing.
    """
    file = io.BytesIO()
    sealer = _Sealer(file, needed, hidden)
    sealer.dump(value)
    return Sealed(zlib.compress(file.getvalue())), tuple(sealer.texts)


def opened(sealed: Sealed, texts: tuple[str, ...], host: str) -> Any:
    """Return the value in ``sealed`` with the secrets restored from ``texts``.

    The use of a secret that was not sent raises an error that names ``host``.
    """
    return _Opener(io.BytesIO(zlib.decompress(sealed.body)), texts, host).load()


class Mailbox:
    """The key pair with which one process receives secrets."""

    def __init__(self) -> None:
        self._key = X25519PrivateKey.generate()

    @property
    def address(self) -> bytes:
        """The public key with which other processes encrypt texts for this process."""
        return self._key.public_key().public_bytes_raw()

    def read(self, encrypted: bytes) -> tuple[str, ...]:
        """Decrypt the texts in ``encrypted``. Raises ``ValueError`` if ``encrypted`` was modified or is for another
        key.
        """
        if not encrypted:
            return ()
        sender, body = encrypted[:_KEY_BYTES], encrypted[_KEY_BYTES:]
        key = _shared(self._key, sender, self.address)
        try:
            return tuple(json.loads(ChaCha20Poly1305(key).decrypt(_NONCE, body, sender)))
        except InvalidTag as error:
            raise ValueError("the message was encrypted for another recipient, or was modified") from error


def encrypted_for(texts: Iterable[str], address: bytes) -> bytes:
    """Encrypt ``texts`` for the mailbox with the public key ``address``. Without texts, return empty bytes."""
    plain = list(texts)
    if not plain:
        return b""
    ours = X25519PrivateKey.generate()
    sender = ours.public_key().public_bytes_raw()
    key = _shared(ours, address, address)
    return sender + ChaCha20Poly1305(key).encrypt(_NONCE, json.dumps(plain).encode(), sender)


def _shared(own: X25519PrivateKey, other: bytes, recipient: bytes) -> bytes:
    secret = own.exchange(X25519PublicKey.from_public_bytes(other))
    return HKDF(SHA256(), _KEY_BYTES, salt=None, info=b"hostwright secrets" + recipient).derive(secret)
