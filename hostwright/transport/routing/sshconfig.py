"""Resolves address, login and host key settings of a server from the inventory and ``ssh_config``.

OpenSSH itself reads ``ssh_config``; this module parses OpenSSH's output.
"""

from __future__ import annotations

import functools
import getpass
import hashlib
import os
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hostwright.common.errors import InputError
from hostwright.common.userpaths import expanded
from hostwright.transport.routing.openssh import Destination, OpenSsh, SshSettings

_TOKEN = re.compile(r"%(.?)|\$\{([^}]*)\}", re.DOTALL)
#: token about this machine's user → function that returns the value and may fail in a container
_USER: Mapping[str, Callable[[], object]] = {"d": Path.home, "u": getpass.getuser}


@dataclass(frozen=True, slots=True)
class Tokens:
    """Values for one server of the tokens in ``ssh_config``, such as ``%h``."""

    host: str
    port: int
    user: str
    asked: str
    jump: str = ""
    alias: str = ""

    def value(self, token: str) -> str | None:
        """Return the value of the token with the letter ``token``; ``None`` for an unsupported token."""
        if token in ("L", "l", "C"):
            here = socket.gethostname()
            all_of_them = f"{here}{self.host}{self.port}{self.user}{self.jump}"
            digest = hashlib.sha1(all_of_them.encode(), usedforsecurity=False).hexdigest()
            return {"l": here, "L": here.partition(".")[0], "C": digest}[token]
        if user := _USER.get(token):
            try:
                return str(user())
            except (RuntimeError, KeyError, OSError):
                return None
        return {
            "%": "%",
            "h": self.host,
            "i": str(os.getuid()),
            "j": self.jump,
            "k": self.alias or self.asked,
            "n": self.asked,
            "p": str(self.port),
            "r": self.user,
        }.get(token)

    def filled(self, text: str, more: Mapping[str, str] | None = None) -> str:
        """Expand the tokens and environment variables in ``text``. ``more`` are further tokens, only for this setting.

        Raises ``InputError`` for a token or variable without a value.
        """

        def one(match: re.Match[str]) -> str:
            if match[2] is not None:
                known = os.environ.get(match[2])
            else:
                known = (more or {}).get(match[1]) or self.value(match[1])
            if known is None:
                raise InputError(f"ssh_config: {match[0]!r} in {text!r} has no value; correct the setting")
            return known

        return _TOKEN.sub(one, text)

    def path(self, text: str) -> Path:
        """Return the file name ``text`` as a path, with tokens expanded."""
        return expanded(self.filled(text))

    def paths(self, setting: str, text: str) -> tuple[Path, ...]:
        """Return the paths in ``text``, the value of ``setting``: file names separated by spaces, with tokens expanded.

        Raises ``InputError`` for a path that is not absolute, because such a path is probably part of a name with a
        space.
        """
        found = tuple(self.path(name) for name in text.split() if name.lower() != "none")
        for path in found:
            if not path.is_absolute():
                raise InputError(
                    f"ssh_config: {setting} {str(path)!r} is not an absolute path; write an absolute path without "
                    "spaces"
                )
        return found


SSH_PORT = 22
#: minimum number of RSA key bits for OpenSSH before 9.1 (without the setting RequiredRSASize)
RSA_BITS = 1024
_USER_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")


@dataclass(frozen=True, slots=True)
class Trust:
    """Settings of ``ssh_config`` for a server's host key."""

    alias: str = ""  #: value of ``HostKeyAlias``
    algorithms: tuple[str, ...] = ()  #: values of ``HostKeyAlgorithms``
    own_order: bool = False  #: whether HostKeyAlgorithms changes OpenSSH's order
    ca_algorithms: tuple[str, ...] = ()  #: values of ``CASignatureAlgorithms``
    revoked: tuple[Path, ...] = ()  #: paths from ``RevokedHostKeys``
    command: str = ""  #: value of ``KnownHostsCommand``
    rsa_bits: int = RSA_BITS  #: value of ``RequiredRSASize``
    address_too: bool = False  #: whether ``CheckHostIP`` is on
    hashed: bool = False  #: whether ``HashKnownHosts`` is on
    strict: bool = False  #: whether StrictHostKeyChecking is ``yes``
    dns: bool = False  #: whether ``VerifyHostKeyDNS`` is on


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An SSH server, with all settings from the inventory and ``ssh_config`` resolved."""

    address: str
    port: int
    user: str
    identity_files: tuple[Path, ...]
    identities_only: bool
    default_identities: bool
    known_hosts: tuple[Path, ...]  #: the user's ``known_hosts`` files. New keys are written to the first file.
    proxy_jump: tuple[str, ...]
    proxy_command: str
    connect_timeout_s: float | None
    system_known_hosts: tuple[Path, ...] = ()
    revoking: tuple[Path, ...] = ()  #: ``known_hosts`` files from which only revoked keys are read
    trust: Trust = Trust()
    asked: str = ""  #: host name as given to ssh, before ``HostName`` replaces the name

    def __str__(self) -> str:
        return f"{self.user}@{self.place}"

    @property
    def place(self) -> str:
        """``address:port``, with brackets around an IPv6 address."""
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"

    @property
    def principal(self) -> str:
        """The name that a host certificate must contain."""
        return self.trust.alias or self.address.lower()

    @property
    def host_key_name(self) -> str:
        """The server's name in a ``known_hosts`` file. A name from ``HostKeyAlias`` has no port."""
        if self.trust.alias or self.port == SSH_PORT:
            return self.principal.lower()
        return f"[{self.principal}]:{self.port}"

    @property
    def portless_name(self) -> str:
        """The server's name without the port in ``known_hosts`` files, if keys for that name also count; else empty."""
        return "" if self.trust.alias or self.port == SSH_PORT else self.principal

    @property
    def tokens(self) -> Tokens:
        """The values that replace tokens of ``ssh_config``, such as ``%h``, for this server."""
        return Tokens(
            host=self.address,
            port=self.port,
            user=self.user,
            asked=self.asked or self.address,
            jump=",".join(self.proxy_jump),
            alias=self.trust.alias,
        )


def resolve(destination: Destination, ssh_config: Path | None, openssh: OpenSsh) -> Endpoint:
    """Resolve all settings of one server. Raises ``InputError`` for an invalid configuration."""
    for value in (destination.alias, destination.user):
        if not value.isprintable() or value.startswith("-") or re.search(r"[\s'\"`$\\;&<>|(){}]", value):
            raise InputError(f"{value!r} is not a valid SSH host or user name; correct it in the inventory")
    # ssh would read a user or a URI in a name with these characters.
    if "@" in destination.alias or "/" in destination.alias:
        raise InputError(f"{destination.alias!r} is not a valid SSH host name; correct it in the inventory")
    return _endpoint(destination, SshSettings(openssh.answer(destination, ssh_config)))


@functools.cache
def _defaults() -> SshSettings:
    return SshSettings(OpenSsh().answer(Destination("localhost"), Path(os.devnull)))


def _endpoint(destination: Destination, settings: SshSettings) -> Endpoint:
    unknown = settings.unknown()
    if unknown:
        raise InputError(f"ssh_config: Hostwright does not support the host key setting '{unknown[0]}'; remove it")
    address, alias = settings.text("hostname") or destination.alias, settings.text("hostkeyalias")
    user, port = settings.text("user") or getpass.getuser(), int(settings.text("port") or SSH_PORT)
    tokens = Tokens(address, port, user, destination.alias, settings.text("proxyjump"), alias)
    named = settings.all("identityfile")
    default = named == _defaults().all("identityfile")
    timeout = settings.text("connecttimeout")
    return Endpoint(
        address=address,
        port=port,
        user=user,
        identity_files=tuple(
            tokens.path(name) for name in (_USER_KEYS if default else named) if name.lower() != "none"
        ),
        identities_only=settings.flag("identitiesonly"),
        default_identities=default,
        known_hosts=tokens.paths("UserKnownHostsFile", settings.text("userknownhostsfile")),
        system_known_hosts=tokens.paths("GlobalKnownHostsFile", settings.text("globalknownhostsfile")),
        proxy_jump=hops(tokens.filled(settings.text("proxyjump"))),
        proxy_command=tokens.filled(settings.text("proxycommand")),
        connect_timeout_s=float(timeout) if timeout.isdigit() and int(timeout) else None,
        trust=_trust(settings, tokens),
        asked=destination.alias,
    )


def _trust(settings: SshSettings, tokens: Tokens) -> Trust:
    algorithms, default = settings.names("hostkeyalgorithms"), _defaults().names("hostkeyalgorithms")
    bits = settings.text("requiredrsasize")
    return Trust(
        alias=settings.text("hostkeyalias"),
        algorithms=algorithms,
        # A ``+`` in HostKeyAlgorithms only appends algorithms, so OpenSSH's order is kept.
        own_order=algorithms[: len(default)] != default,
        ca_algorithms=settings.names("casignaturealgorithms"),
        revoked=tokens.paths("RevokedHostKeys", settings.text("revokedhostkeys")),
        command=settings.text("knownhostscommand"),
        rsa_bits=int(bits) if bits.isdigit() else RSA_BITS,
        address_too=settings.flag("checkhostip"),
        hashed=settings.flag("hashknownhosts"),
        strict=settings.text("stricthostkeychecking").lower() in ("yes", "true"),
        dns=settings.flag("verifyhostkeydns"),
    )


def hops(proxy_jump: str) -> tuple[str, ...]:
    """The jump hosts in ``proxy_jump``, a value of ``ProxyJump``, in order."""
    if proxy_jump.lower() == "none":
        return ()
    return tuple(hop.strip().removeprefix("ssh://") for hop in proxy_jump.split(",") if hop.strip())


def hop(text: str) -> Destination:
    """Parse the jump host ``[user@]host[:port]``, with an IPv6 address in brackets.

    Raises ``InputError`` for any other ``text``.
    """
    match = re.fullmatch(r"(?:([^@]+)@)?(?:\[([0-9A-Fa-f:.%\w]+)\]|([^:@\[\]]+))(?::(\d{1,5}))?", text)
    if not match:
        raise InputError(f"{text!r} is not a jump host; write [user@]host[:port]")
    return Destination(alias=match[2] or match[3], user=match[1] or "", port=int(match[4] or 0))
