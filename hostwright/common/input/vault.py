"""Decrypts files and values that ``ansible-vault`` encrypted.

Ansible's user guide documents the format ("Format of files encrypted with Ansible Vault", 1.1 and 1.2): a header line,
then a hexadecimal text. The text encodes three lines, which are hexadecimal again: salt, HMAC-SHA256 of the ciphertext,
and ciphertext (AES-256 in counter mode, PKCS#7 padding). PBKDF2 with SHA-256 derives keys and counter from the
password.

    >>> Vault(lambda: [Secret("wrong")]).open("$ANSIBLE_VAULT;1.1;AES256\\n333231", "vars.yml")
    Traceback (most recent call last):
    hostwright.common.errors.InputError: vars.yml: is not valid Ansible Vault data
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
#: PBKDF2 rounds, bytes of a key and bytes of an AES block, in Ansible's format
_ROUNDS, _KEY, _BLOCK = 10_000, 32, 16
#: time limit in seconds of a program that prints a vault password
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Vault:
    """Decrypts text with the first of several passwords that fits. ``passwords`` is called on first use."""

    passwords: Callable[[], Iterable[Secret]] = tuple

    @cached_property
    def known(self) -> tuple[Secret, ...]:
        """All vault passwords; empty if the operator gave none. Raises ``InputError`` if a password cannot be read."""
        return tuple(self.passwords())

    def open(self, text: str, place: str) -> str:
        """Decrypt ``text``. If no password fits, raises an ``InputError`` that names ``place``, a file and line."""
        try:
            return self.opened(text)
        except ValueError as error:
            raise InputError(str(error), place) from error

    def opened(self, text: str) -> str:
        """Decrypt ``text``. Raises ``ValueError`` if no password fits."""
        salt, digest, cipher = _parts(text)
        for password in self.known:
            plain = _decrypted(password, salt, digest, cipher)
            if plain is not None:
                return _decoded(plain)
        given = "the vault password is" if len(self.known) == 1 else f"all {len(self.known)} vault passwords are"
        wrong = f": {given} wrong" if self.known else f"; pass {OPTION} FILE"
        raise ValueError(f"is encrypted with Ansible Vault{wrong}")


def is_vault(text: str) -> bool:
    """Return whether ``text`` begins with the header of Ansible Vault."""
    return text.startswith(HEADER)


def password_of(source: str) -> Secret:
    """Read a vault password from the file ``source``, or from the output of ``source`` if the file is executable, as in
    Ansible.

    A program inherits the operator's environment and standard error. Raises ``InputError`` if the file cannot be read
    or the program fails.
    """
    file = expanded(source)
    try:
        program = os.access(file, os.X_OK) and not file.is_dir()
        # Ansible strips only line ends from a program's output, but all surrounding blanks from a file.
        password = _printed(file).strip("\r\n") if program else file.read_text("utf-8").strip()
    except OSError as error:
        plain = f"; if it is not a program, run `chmod -x {source}`" if error.errno == errno.ENOEXEC else ""
        raise InputError(f"cannot be read: {unread(error)}{plain}", f"{OPTION} {source}") from error
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", f"{OPTION} {source}") from error
    if not password:
        raise InputError("contains no password", f"{OPTION} {source}")
    return Secret(password)


def _printed(file: Path) -> str:
    place = f"{OPTION} {file}"
    try:
        done = subprocess.run([file.absolute()], stdout=subprocess.PIPE, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise InputError(f"printed no password within {shown_limit(_TIMEOUT_S)}", place) from error
    if done.returncode:
        raise InputError(f"ended with exit status {done.returncode}", place)
    return done.stdout.decode("utf-8")


def _decoded(plain: bytes) -> str:
    try:
        return plain.decode()
    except UnicodeDecodeError as error:
        raise ValueError("the decrypted value is not UTF-8 text") from error


def _parts(text: str) -> tuple[bytes, bytes, bytes]:
    header, _, body = text.strip().partition("\n")
    _, _, rest = header.strip().partition(";")
    version, _, cipher = rest.partition(";")
    if version not in _VERSIONS or cipher.partition(";")[0] != _CIPHER:
        form = header.strip()[: len(HEADER) + 40]
        raise ValueError(
            f"the Ansible Vault format {form!r} is not supported; `ansible-vault rekey` converts it to {_VERSIONS[-1]}"
        )
    try:
        salt, digest, ciphertext = map(unhexlify, unhexlify("".join(body.split())).split(b"\n", 2))
    except ValueError as error:  # ``binascii.Error`` is a subclass of ``ValueError``.
        raise ValueError("is not valid Ansible Vault data") from error
    return salt, digest, ciphertext


def _decrypted(password: Secret, salt: bytes, digest: bytes, ciphertext: bytes) -> bytes | None:
    from cryptography.exceptions import InvalidSignature  # Most commands do not need this slow import.
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
    except ValueError:  # The HMAC is valid, but another program padded the data.
        return padded
