"""Parser of seeds (installers' settings): the user, the user's keys, and the host key of the new system.

Only the values that the lab's installer applies are parsed, and each is validated.
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

_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")  # pattern of user names that Debian's adduser accepts
_PUBLIC_KEY = re.compile(r"(ssh-|ecdsa-|sk-)[a-z0-9@.-]+ [A-Za-z0-9+/=]+( [^\n]*)?")
_PRESEED_LINE = re.compile(r"(?P<owner>\S+)\s+(?P<question>\S+)\s+(?P<type>\S+)(?:\s(?P<value>.*))?")


@dataclass(frozen=True, slots=True)
class Seed:
    """Supported settings of a requested installation."""

    kind: str  #: name of the installer that reads the seed
    hostname: str
    user: str
    authorized_keys: tuple[str, ...] = ()
    #: password hash of the user in the format of shadow(5); None: locked password
    password_hash: Secret | None = None
    host_key: Secret | None = None  #: OpenSSH private key of the new system; None: the system generates a key
    late_commands: tuple[str, ...] = ()  #: shell commands to run after the installation, with the new system at /target
    storage: str = ""  #: disk layout as text. The lab does not partition disks.


def parse_autoinstall(text: str) -> Seed:
    """Parse Ubuntu's ``user-data``. Raises `LabError` if Ubuntu's installer would prompt."""
    if not text.startswith("#cloud-config"):
        raise LabError("user-data does not begin with #cloud-config, so cloud-init ignores it; add that line")
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise LabError(f"user-data is not valid YAML: {error}") from error
    install = _mapping(_mapping(document, "user-data").get("autoinstall"), "autoinstall")
    if install.get("version") != 1:
        raise LabError("autoinstall has no `version: 1`; add it")
    identity = _mapping(install.get("identity"), "autoinstall.identity")
    ssh = _mapping(install.get("ssh", {}), "autoinstall.ssh")
    if ssh.get("install-server") is not True:
        raise LabError("autoinstall.ssh has no `install-server: true`, so nobody could log in; add it")
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
    """Parse a Debian preseed file. Raises `LabError` if Debian's installer would prompt.

    SSH keys are not parsed, because the seed's ``late_command`` installs them.
    """
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
    """Parse a preseed file into debconf question → answer. Raises `LabError` for a line that debconf rejects."""
    answers = {}
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _PRESEED_LINE.fullmatch(line.strip())
        if not found:
            raise LabError(f"preseed.cfg has a line with fewer than three words: {line[:80]!r}")
        answers[found["question"]] = (found["value"] or "").strip()
    return answers


def _mapping(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise LabError(f"{where} of the seed is missing or not a mapping")
    return value


def _host_name(value: object) -> str:
    if not isinstance(value, str):
        raise LabError("the seed has no host name, so the installer would prompt; add one")
    require_host_name(value)
    return value


def _user(value: object) -> str:
    if not isinstance(value, str) or not _USER.fullmatch(value):
        raise LabError("the seed has no valid user name, so the installer would prompt; add one")
    return value


def _commands(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise LabError("autoinstall.late-commands is not a list")
    commands = []
    for command in value:
        words = [command] if isinstance(command, str) else command
        if not isinstance(words, list) or not all(isinstance(word, str) and "\0" not in word for word in words):
            raise LabError("a command of autoinstall.late-commands is neither a string nor a list of strings")
        commands.append(command if isinstance(command, str) else shlex.join(words))
    return tuple(commands)


def _password(value: object) -> Secret | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or re.search(r"[\s:]", value):
        raise LabError("the seed's password is not a hash as in shadow(5)")
    return Secret(value)


def _public_keys(lines: object) -> tuple[str, ...]:
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise LabError("the seed's authorized keys are not a list of lines")
    keys = tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    for key in keys:
        if not _PUBLIC_KEY.fullmatch(key):
            raise LabError(f"an authorized key of the seed is not a public key: {key[:40]!r}")
    return keys


def public_line(private: Secret) -> str:
    """Return the public key of the OpenSSH key ``private``, in the format of a .pub file."""
    key = serialization.load_ssh_private_key(private.reveal().encode(), None).public_key()
    return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()


def _host_key(private: object, public: object) -> Secret:
    """Raise `LabError` if ``private`` and ``public`` do not match, because sshd would not start."""
    if not isinstance(private, str) or not isinstance(public, str):
        raise LabError("the seed's host key is not a pair of strings, the private key and the public key")
    key = Secret(private if private.endswith("\n") else private + "\n")
    try:
        line = public_line(key)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # the original error may contain a part of the key
        raise LabError("the seed's host key is not an OpenSSH private key") from None
    if line.split()[:2] != public.split()[:2] or not line.startswith("ssh-ed25519 "):
        raise LabError("the seed's public host key does not belong to its private ed25519 key")
    return key
