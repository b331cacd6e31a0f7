"""Where and how a server is reached: inventory first, then ``ssh_config``, then OpenSSH's defaults.

paramiko interprets ``ssh_config``; this module adds ``Include`` and speed: 1,000 stanzas cost paramiko 16 ms per
look-up, so it is given only those that can match.
"""

from __future__ import annotations

import fnmatch
import getpass
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hostwright.common.errors import InputError
from hostwright.common.userpaths import expanded

if TYPE_CHECKING:
    from hostwright.transport.cache import FileCache

_SETTING = re.compile(r"\s*(\w+)(?:\s*=\s*|\s+)(.+?)\s*$")
_MAX_INCLUDES = 16  #: the depth at which OpenSSH also stops
USER_FILES = ("~/.ssh/config", "/etc/ssh/ssh_config")
_USER_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
_USER_KNOWN_HOSTS = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
_SYSTEM_KNOWN_HOSTS = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"


@dataclass(frozen=True, slots=True)
class Destination:
    """What the inventory (or a hop of a ProxyJump) specifies; unspecified values are empty."""

    alias: str
    user: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One SSH server, fully resolved."""

    address: str
    port: int
    user: str
    host_key_name: str
    identity_files: tuple[Path, ...]
    identities_only: bool
    default_identities: bool
    known_hosts: tuple[Path, ...]
    proxy_jump: tuple[str, ...]
    proxy_command: str
    connect_timeout_s: float | None

    def __str__(self) -> str:
        return f"{self.user}@{self.address}:{self.port}"


@dataclass(frozen=True)
class Stanza:
    """A ``Host`` or ``Match`` line and the settings below it."""

    header: str
    settings: list[str] = field(default_factory=list)

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], re.Pattern[str]] | None:
        """The patterns that names must match, and those that they must not."""
        keyword, value = _keyword(self.header)
        if keyword != "host":
            return None
        words = shlex.split(value)
        return (
            _either(word for word in words if not word.startswith("!")),
            _either(word[1:] for word in words if word.startswith("!")),
        )

    def can_match(self, alias: str) -> bool:
        """Whether the settings may apply to this host; a ``Match`` line is left to paramiko."""
        if self._patterns is None:
            return True
        wanted, refused = self._patterns
        return bool(wanted.match(alias)) and not refused.match(alias)


def _either(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns) or r"(?!)")


@dataclass(frozen=True, slots=True)
class SshConfig:
    """One configuration file with everything that it includes."""

    path: Path
    stanzas: tuple[Stanza, ...] = ()

    @classmethod
    def read(cls, path: Path) -> SshConfig:
        """Read a file and its includes. Raises ``InputError`` for a line that is not a setting."""
        stanzas = [Stanza("Host *")]
        _read_into(stanzas, path, depth=0)
        return cls(path, tuple(stanza for stanza in stanzas if stanza.settings))

    def text_for(self, alias: str) -> str:
        """The stanzas that may apply to a host, as text."""
        return "\n".join(
            line for stanza in self.stanzas if stanza.can_match(alias) for line in (stanza.header, *stanza.settings)
        )


def _keyword(line: str) -> tuple[str, str]:
    match = _SETTING.match(line)
    return (match[1].lower(), match[2]) if match else ("", "")


def _read_into(stanzas: list[Stanza], path: Path, depth: int) -> None:
    """Append a file's stanzas; the last one in the list is open and takes settings."""
    if depth > _MAX_INCLUDES:
        raise InputError(f"files include each other more than {_MAX_INCLUDES} deep", str(path))
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        keyword, value = _keyword(text)
        if not keyword:
            raise InputError(f"{text!r} is not a setting", f"{path}:{number}")
        try:
            if keyword == "include":
                enclosing = stanzas[-1].header
                for included in _included(value, path):
                    stanzas.append(Stanza(enclosing))
                    _read_into(stanzas, included, depth + 1)
                stanzas.append(Stanza(enclosing))
            elif keyword in ("host", "match"):
                shlex.split(value)
                stanzas.append(Stanza(text))
            else:
                stanzas[-1].settings.append(text)
        except ValueError as error:
            raise InputError(f"{error} in {text!r}", f"{path}:{number}") from error


def _included(value: str, path: Path) -> list[Path]:
    """The files that an ``Include`` names; relative paths are beside the user's or the system's configuration."""
    base = Path("/etc/ssh") if path.is_relative_to("/etc/ssh") else expanded("~/.ssh")
    paths: list[Path] = []
    for pattern in shlex.split(value):
        whole = base / expanded(pattern)
        paths += sorted(file for file in Path("/").glob(str(whole.relative_to("/"))) if file.is_file())
    return paths


def resolve(destination: Destination, files: FileCache[SshConfig], ssh_config: Path | None) -> Endpoint:
    """Resolve everything about one server. Raises ``InputError`` for an invalid configuration."""
    text = [_explicit(destination)]
    for path in [ssh_config] if ssh_config else [expanded(name) for name in USER_FILES]:
        try:
            text.append(files.get(expanded(path)).text_for(destination.alias))
        except FileNotFoundError:
            if ssh_config:
                raise InputError("there is no such file; it was named as ssh_config", str(ssh_config)) from None
    return _endpoint(destination, _lookup("\n".join(text), destination.alias))


def _explicit(destination: Destination) -> str:
    """The inventory's values as the first stanza: in ``ssh_config`` the first value wins."""
    for value in (destination.alias, destination.user):
        if not value.isprintable() or value.startswith("-") or re.search(r"[\s'\"`$\\;&<>|(){}]", value):
            raise InputError(f"{value!r} cannot be the name of a host or user for SSH")
    lines = ["Host *"]
    if destination.user:
        lines.append(f"User {destination.user}")
    if destination.port:
        lines.append(f"Port {destination.port}")
    return "\n".join(lines)


def _lookup(text: str, alias: str) -> dict[str, str | list[str] | None]:
    """The text as paramiko interprets it. ``%l`` is left alone: it would ask DNS for this machine's name each time."""
    from paramiko import ConfigParseError, SSHConfig

    try:
        config = SSHConfig.from_text(text)
        tokens = ["~", "%d", "%h", "%u", "%r"]
        config.TOKENS_BY_CONFIG_KEY = {
            **config.TOKENS_BY_CONFIG_KEY,
            "identityfile": tokens,
            "userknownhostsfile": tokens,
        }
        return dict(config.lookup(alias))
    except ConfigParseError as error:
        raise InputError(f"ssh_config cannot be understood: {error}") from error


def _endpoint(destination: Destination, settings: dict[str, str | list[str] | None]) -> Endpoint:
    def text(key: str, default: str = "") -> str:
        value = settings.get(key)
        return value if isinstance(value, str) else default

    named = settings.get("identityfile") or []
    via = next((key for key in settings if key in ("proxyjump", "proxycommand")), "")
    jump = text("proxyjump") if via == "proxyjump" else ""
    address = text("hostname", destination.alias)
    return Endpoint(
        address=address,
        port=_number(text("port", "22"), "Port", destination.alias),
        user=text("user") or getpass.getuser(),
        host_key_name=text("hostkeyalias", address).lower(),
        identity_files=tuple(_paths(named if isinstance(named, list) else [named]) or _paths(_USER_KEYS)),
        identities_only=text("identitiesonly").lower() == "yes",
        default_identities=not named,
        known_hosts=tuple(
            _paths(text("userknownhostsfile", _USER_KNOWN_HOSTS).split())
            + _paths(text("globalknownhostsfile", _SYSTEM_KNOWN_HOSTS).split())
        ),
        proxy_jump=hops(jump),
        proxy_command=text("proxycommand") if via == "proxycommand" else "",
        connect_timeout_s=_number(text("connecttimeout", "0"), "ConnectTimeout", destination.alias) or None,
    )


def _paths(names: list[str] | tuple[str, ...]) -> list[Path]:
    return [expanded(name) for name in names if name.lower() != "none"]


def _number(text: str, setting: str, alias: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise InputError(f"ssh_config gives {alias} the {setting} {text!r}, which is not a number")
    return int(text)


def hops(proxy_jump: str) -> tuple[str, ...]:
    """The hops of a ``ProxyJump``, in their order."""
    if proxy_jump.lower() == "none":
        return ()
    return tuple(hop.strip().removeprefix("ssh://") for hop in proxy_jump.split(",") if hop.strip())


def hop(text: str) -> Destination:
    """One ``[user@]host[:port]``; an IPv6 address is in brackets. Raises ``InputError``."""
    match = re.fullmatch(r"(?:([^@]+)@)?(?:\[([0-9A-Fa-f:.%\w]+)\]|([^:@\[\]]+))(?::(\d{1,5}))?", text)
    if not match:
        raise InputError(f"{text!r} is not a jump host; write [user@]host[:port]")
    return Destination(alias=match[2] or match[3], user=match[1] or "", port=int(match[4] or 0))
