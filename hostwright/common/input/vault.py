"""Ansible Vault: files and values that people encrypted with ``ansible-vault``, opened with their passwords.

The format is that of Ansible's user guide ("Format of files encrypted with Ansible Vault"), 1.1 and 1.2: a header line,
then hexadecimal text of three hexadecimal lines: salt, HMAC-SHA256 of the ciphertext, ciphertext (AES-256 in counter
mode, padded as in PKCS#7). PBKDF2 with SHA-256 and 10,000 rounds makes the two keys and the counter from password and
salt.

    >>> Vault(lambda: [Secret("wrong")]).open("$ANSIBLE_VAULT;1.1;AES256\\n333231", "vars.yml")
    Traceback (most recent call last):
    hostwright.common.errors.InputError: vars.yml: is damaged: it is no text that Ansible Vault encrypted
"""

from __future__ import annotations

import errno
import os
import subprocess
from binascii import unhexlify
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hostwright.common.errors import InputError
from hostwright.common.places import unread
from hostwright.common.secret import Secret
from hostwright.common.text import shown_limit
from hostwright.common.userpaths import expanded

HEADER = "$ANSIBLE_VAULT;"
OPTION = "--vault-password-file"
_CIPHER, _VERSIONS = "AES256", ("1.1", "1.2")
_ROUNDS, _KEY, _BLOCK = 10_000, 32, 16  #: Ansible's: rounds of PBKDF2, bytes of a key, bytes of AES's block
_TIMEOUT_S = 60.0  #: a password manager may ask its user for a fingerprint


@dataclass(frozen=True)
class Vault:
    """Opens what was encrypted with one of these passwords, which are asked for when the first is needed."""

    passwords: Callable[[], Iterable[Secret]] = tuple

    @cached_property
    def known(self) -> tuple[Secret, ...]:
        """The passwords; empty if none was given. Raises ``InputError`` for one that cannot be had."""
        return tuple(self.passwords())

    def open(self, text: str, place: str) -> str:
        """The text that was encrypted. Raises ``InputError``, with the place, where no password opens it."""
        try:
            return self.opened(text)
        except ValueError as error:
            raise InputError(str(error), place) from error

    def opened(self, text: str) -> str:
        """The text that was encrypted. Raises ``ValueError`` with a sentence where no password opens it."""
        salt, digest, cipher = _parts(text)
        for password in self.known:
            plain = _decrypted(password, salt, digest, cipher)
            if plain is not None:
                return _decoded(plain)
        given = "the vault password is" if len(self.known) == 1 else f"all {len(self.known)} vault passwords are"
        wrong = f"{given} wrong for it" if self.known else f"{OPTION} FILE opens it"
        raise ValueError(f"is encrypted with Ansible Vault: {wrong}")


def is_vault(text: str) -> bool:
    """Whether a text is what ``ansible-vault`` writes."""
    return text.startswith(HEADER)


def password_of(source: str) -> Secret:
    """The password in a file, or that a program prints. Raises ``InputError``.

    As in Ansible, a file that may be executed is a program. Its environment and standard error are the operator's.
    """
    file = expanded(source)
    try:
        program = os.access(file, os.X_OK) and not file.is_dir()
        password = _printed(file).strip("\r\n") if program else file.read_text("utf-8").strip()  # as Ansible does
    except OSError as error:
        plain = f"; if it is no program, `chmod -x {source}`" if error.errno == errno.ENOEXEC else ""
        raise InputError(f"cannot be read: {unread(error)}{plain}", f"{OPTION} {source}") from error
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", f"{OPTION} {source}") from error
    if not password:
        raise InputError("there is no password in it", f"{OPTION} {source}")
    return Secret(password)


def _printed(file: Path) -> str:
    place = f"{OPTION} {file}"
    try:
        done = subprocess.run([file.absolute()], stdout=subprocess.PIPE, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise InputError(f"it printed no password within {shown_limit(_TIMEOUT_S)}", place) from error
    if done.returncode:
        raise InputError(f"it ended with status {done.returncode}", place)
    return done.stdout.decode("utf-8")


def _decoded(plain: bytes) -> str:
    try:
        return plain.decode()
    except UnicodeDecodeError as error:
        raise ValueError("is not UTF-8 text within Ansible Vault's encryption") from error


def _parts(text: str) -> tuple[bytes, bytes, bytes]:
    """Salt, digest and ciphertext. Raises ``ValueError`` for what is damaged or of another version."""
    header, _, body = text.strip().partition("\n")
    _, _, rest = header.strip().partition(";")
    version, _, cipher = rest.partition(";")
    if version not in _VERSIONS or cipher.partition(";")[0] != _CIPHER:
        form = header.strip()[: len(HEADER) + 40]
        raise ValueError(f"has the form {form!r}: `ansible-vault rekey` writes today's ({_VERSIONS[-1]})")
    try:
        salt, digest, ciphertext = map(unhexlify, unhexlify("".join(body.split())).split(b"\n", 2))
    except ValueError as error:  # binascii.Error is one
        raise ValueError("is damaged: it is no text that Ansible Vault encrypted") from error
    return salt, digest, ciphertext


def _decrypted(password: Secret, salt: bytes, digest: bytes, ciphertext: bytes) -> bytes | None:
    """What was encrypted; ``None`` for a wrong password."""
    from cryptography.exceptions import InvalidSignature  # slow to import, and few inventories are encrypted
    from cryptography.hazmat.primitives import hashes, hmac, padding
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

    kdf = PBKDF2HMAC(hashes.SHA256(), 2 * _KEY + _BLOCK, salt, _ROUNDS)
    keys = kdf.derive(password.reveal().encode())
    check = hmac.HMAC(keys[_KEY : 2 * _KEY], hashes.SHA256())
    check.update(ciphertext)
    try:
        check.verify(digest)
    except InvalidSignature:
        return None
    decryptor = Cipher(algorithms.AES(keys[:_KEY]), modes.CTR(keys[2 * _KEY :])).decryptor()
    unpadder = padding.PKCS7(8 * _BLOCK).unpadder()
    padded = decryptor.update(ciphertext) + decryptor.finalize()
    try:
        return unpadder.update(padded) + unpadder.finalize()
    except ValueError:  # authentic, but not padded: another program wrote it
        return padded
