"""Reads the facts in a seed: who logs in, with which keys, and which host key the system must come up with.

Only what the stand-in installer applies is read; the rest of a seed is for a real installer. A seed comes over the
network: everything that is used is checked.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Any

import yaml
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from hostwright.common.errors import LabError
from hostwright.common.secret import Secret
from lab.config import require_host_name

_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")  # what Debian's adduser accepts
_PUBLIC_KEY = re.compile(r"(ssh-|ecdsa-|sk-)[a-z0-9@.-]+ [A-Za-z0-9+/=]+( [^\n]*)?")
_PRESEED_LINE = re.compile(r"(?P<owner>\S+)\s+(?P<question>\S+)\s+(?P<type>\S+)(?:\s(?P<value>.*))?")


@dataclass(frozen=True, slots=True)
class Seed:
    """The desired result of an installation, as far as the lab can produce it."""

    kind: str  #: the kind of installer, in words
    hostname: str
    user: str
    authorized_keys: tuple[str, ...] = ()
    password_hash: Secret | None = None  #: as in shadow(5)
    host_key: Secret | None = None  #: OpenSSH private key; None: the system makes its own
    late_commands: tuple[str, ...] = ()  #: shell, run with the new system at /target
    storage: str = ""  #: what the seed says about the disk, in words; the lab does not partition


def parse_autoinstall(text: str) -> Seed:
    """Return the facts in an Ubuntu autoinstall seed (``user-data``). Raises `LabError` where the installer would
    ask."""
    if not text.startswith("#cloud-config"):
        raise LabError("user-data does not begin with #cloud-config: cloud-init passes over it")
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise LabError(f"user-data is no YAML: {error}") from error
    install = _mapping(_mapping(document, "user-data").get("autoinstall"), "autoinstall")
    if install.get("version") != 1:
        raise LabError("autoinstall has no `version: 1`")
    identity = _mapping(install.get("identity"), "autoinstall.identity")
    ssh = _mapping(install.get("ssh", {}), "autoinstall.ssh")
    if ssh.get("install-server") is not True:
        raise LabError("autoinstall.ssh has no `install-server: true`: nobody could log in")
    keys = _mapping(_mapping(install.get("user-data", {}), "user-data").get("ssh_keys", {}), "user-data.ssh_keys")
    private = keys.get("ed25519_private")
    return Seed(
        kind="Ubuntu autoinstall",
        hostname=_host_name(identity.get("hostname")),
        user=_user(identity.get("username")),
        authorized_keys=_public_keys(ssh.get("authorized-keys", [])),
        password_hash=_password(identity.get("password")),
        host_key=_host_key(private, keys.get("ed25519_public")) if private else None,
        late_commands=_commands(install.get("late-commands", [])),
        storage=" ".join(yaml.safe_dump(install.get("storage", "as the installer likes"), width=10**6).split())[:200],
    )


def parse_preseed(text: str) -> Seed:
    """Return the facts in a Debian preseed; its late_command brings the keys. Raises `LabError` where d-i would ask."""
    answers = preseed_answers(text)
    late = answers.get("preseed/late_command", "")
    return Seed(
        kind="Debian preseed",
        hostname=_host_name(answers.get("netcfg/get_hostname") or answers.get("netcfg/hostname")),
        user=_user(answers.get("passwd/username")),
        password_hash=_password(answers.get("passwd/user-password-crypted")),
        late_commands=(late,) if late else (),
        storage=f"{answers.get('partman-auto/disk', 'any disk')}, {answers.get('partman-auto/method', 'any method')}",
    )


def preseed_answers(text: str) -> dict[str, str]:
    """Return debconf question → answer. Raises `LabError` for a line that debconf would not accept."""
    answers = {}
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _PRESEED_LINE.fullmatch(line.strip())
        if not found:
            raise LabError(f"preseed.cfg has a line of less than three words: {line[:80]!r}")
        answers[found["question"]] = (found["value"] or "").strip()
    return answers


def _mapping(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise LabError(f"{where} of the seed is missing or no mapping")
    return value


def _host_name(value: object) -> str:
    if not isinstance(value, str):
        raise LabError("the seed names no host: the installer asks for a name")
    require_host_name(value)
    return value


def _user(value: object) -> str:
    if not isinstance(value, str) or not _USER.fullmatch(value):
        raise LabError("the seed names no user that can be made: the installer asks for one")
    return value


def _commands(value: object) -> tuple[str, ...]:
    """Return late-commands as shell: each is a text, or a list of words."""
    if not isinstance(value, list):
        raise LabError("autoinstall.late-commands is no list")
    commands = []
    for command in value:
        words = [command] if isinstance(command, str) else command
        if not isinstance(words, list) or not all(isinstance(word, str) and "\0" not in word for word in words):
            raise LabError("a command of autoinstall.late-commands is neither a text nor a list of words")
        commands.append(command if isinstance(command, str) else shlex.join(words))
    return tuple(commands)


def _password(value: object) -> Secret | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or re.search(r"[\s:]", value):
        raise LabError("the seed's password is no hash as in shadow(5)")
    return Secret(value)


def _public_keys(lines: object) -> tuple[str, ...]:
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise LabError("the seed's authorized keys are no list of lines")
    keys = tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    for key in keys:
        if not _PUBLIC_KEY.fullmatch(key):
            raise LabError(f"an authorized key of the seed is no public key: {key[:40]!r}")
    return keys


def public_line(private: Secret) -> str:
    """Return the public key of an OpenSSH private key, as in the .pub file, without a comment."""
    key = serialization.load_ssh_private_key(private.reveal().encode(), None).public_key()
    return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()


def _host_key(private: object, public: object) -> Secret:
    """Return the host key if both halves belong together: sshd would not start with any other pair."""
    if not isinstance(private, str) or not isinstance(public, str):
        raise LabError("the seed's host key is not two texts, a private and a public one")
    key = Secret(private if private.endswith("\n") else private + "\n")
    try:
        line = public_line(key)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # From None: the original error may show a part of the key.
        raise LabError("the seed's host key is no OpenSSH private key") from None
    if line.split()[:2] != public.split()[:2] or not line.startswith("ssh-ed25519 "):
        raise LabError("the seed's public host key is not the one of its private ed25519 key")
    return key
