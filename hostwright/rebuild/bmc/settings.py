"""Settings of a host's BMC, from variables of the inventory (``hostwright_bmc…``)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from hostwright.common.durations import seconds
from hostwright.common.errors import InputError, InputErrors
from hostwright.common.input.validation import describe, unknown_name
from hostwright.common.input.yamlfile import Vaulted
from hostwright.common.secret import Secret
from hostwright.inventory import Host

ADDRESS = "hostwright_bmc"
USER, PASSWORD, PASSWORD_COMMAND = f"{ADDRESS}_user", f"{ADDRESS}_password", f"{ADDRESS}_password_command"
CA, SYSTEM, TIMEOUT, CONSOLE = f"{ADDRESS}_ca", f"{ADDRESS}_system", f"{ADDRESS}_timeout", f"{ADDRESS}_console"
INSECURE = f"{ADDRESS}_insecure"
NAMES = (ADDRESS, USER, PASSWORD, PASSWORD_COMMAND, CA, SYSTEM, TIMEOUT, CONSOLE, INSECURE)

#: default time limit in seconds until a BMC has carried out a request; large servers take a minute to shut down
TIMEOUT_S = 120.0
_PATHS = ("", "/redfish", "/redfish/v1")
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9._-]{0,252}[a-z0-9])?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_TEMPLATE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@dataclass(frozen=True, slots=True)
class Bmc:
    """Settings of one host's BMC. ``timeout_s`` limits each order, including the wait for its effect."""

    host: str
    url: str  #: URL of the BMC: ``https://NAME[:PORT]``, or ``http://`` if the inventory allows connections without TLS
    user: str
    password: Secret | None = None
    password_command: str = ""
    ca: str = ""  #: path of a PEM file with trusted certificates; empty for the certificates of this machine
    system: str = ""  #: id, name or UUID of the host's Redfish system; empty if the BMC has only one system
    timeout_s: float = TIMEOUT_S
    console: str = ""  #: hint for the operator on how to open the host's console

    @property
    def insecure(self) -> bool:
        """Whether connections to the BMC lack TLS."""
        return self.url.startswith("http://")

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings for the operator about insecure settings."""
        plain = f"the BMC at {self.url} is used without TLS: its password can be read in transit ({INSECURE})"
        return (plain,) if self.insecure else ()


class _Bad(Exception):
    """Error about the value of a variable. Its text does not contain the variable's name."""


def read_bmc(host: Host) -> Bmc | None:
    """Read the settings of a host's BMC; ``None`` if the inventory has no BMC for the host.

    Templates of a single variable, such as ``{{ inventory_hostname }}``, are filled in. Raises ``InputError`` with all
    invalid variables.
    """
    variables = _Variables(host)
    values = {name: variables.read(name) for name in host.vars if name.startswith(ADDRESS)}
    values = {name: value for name, value in values.items() if value is not None}
    variables.check_together(values)
    if variables.mistakes:
        raise variables.mistakes[0] if len(variables.mistakes) == 1 else InputErrors(variables.mistakes)
    if ADDRESS not in values:
        return None
    return Bmc(
        host.name,
        values[ADDRESS],
        values[USER],
        values.get(PASSWORD),
        values.get(PASSWORD_COMMAND, ""),
        values.get(CA, ""),
        values.get(SYSTEM, ""),
        values.get(TIMEOUT, TIMEOUT_S),
        values.get(CONSOLE, ""),
    )


class _Variables:
    def __init__(self, host: Host):
        self._host = host
        self.mistakes: list[InputError] = []

    def read(self, name: str) -> Any:
        """Return the variable's value; ``None`` if it is unset or invalid. An invalid value adds an error to
        ``mistakes``.
        """
        value = self._host.get(name)
        if value is None:
            return None
        try:
            if name not in NAMES:
                raise _Bad(unknown_name(name, NAMES))
            filled = self._filled(value)
            return _READERS[name](filled.reveal() if isinstance(filled, Secret) and name != PASSWORD else filled)
        except _Bad as error:
            secret = isinstance(value, Secret) and name != PASSWORD
            self._fail(name, "has an invalid value, which is not shown because it is secret" if secret else str(error))
            return None

    def check_together(self, values: Mapping[str, Any]) -> None:
        if self._host.get(ADDRESS) is None:
            return
        if self._host.get(USER) is None:
            self._fail(ADDRESS, f"is set, but {USER} is not; set both")
        secrets = [name for name in (PASSWORD, PASSWORD_COMMAND) if self._host.get(name) is not None]
        if not secrets:
            self._fail(ADDRESS, f"is set without a password; set {PASSWORD} or {PASSWORD_COMMAND}")
        elif len(secrets) > 1:
            self._fail(PASSWORD_COMMAND, f"is set, but {PASSWORD} is set as well; set one of them to null")
        if values.get(ADDRESS, "").startswith("http://") and not values.get(INSECURE):
            self._fail(
                ADDRESS,
                f"over http:// the password can be read in transit: use https://, or for a BMC without TLS also set "
                f"{INSECURE}: true",
            )

    def _fail(self, name: str, sentence: str) -> None:
        self.mistakes.append(InputError(f"{name}: {sentence}", self._host.vars[name].origin.exact))

    def _filled(self, value: Any) -> Any:
        if isinstance(value, Vaulted):
            raise _Bad(f"{value.sentence}; {PASSWORD_COMMAND} can query a password manager instead")
        if isinstance(value, Secret):
            return Secret(_TEMPLATE.sub(lambda match: self._variable(match, secret=True), value.reveal()))
        return _TEMPLATE.sub(self._variable, value) if isinstance(value, str) else value

    def _variable(self, match: re.Match[str], *, secret: bool = False) -> str:
        if match[1] in ("inventory_hostname", "inventory_hostname_short"):
            name = self._host.name
            return name if match[1] == "inventory_hostname" else name.partition(".")[0]
        value = self._host.get(match[1])
        if isinstance(value, Secret) and not secret:
            raise _Bad(f"the template refers to {match[1]!r}, a secret, which is not allowed here")
        plain = value.reveal() if isinstance(value, Secret) else value
        if isinstance(plain, bool) or not isinstance(plain, (str, int)):
            raise _Bad(f"the template refers to {match[1]!r}, which is not a variable with text or a number")
        return str(plain)


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
        raise _Bad(f"found {describe(value)}, expected text")
    if _CONTROL.search(str(value)):
        raise _Bad("the value contains a line break or another control character")
    return str(value).strip()


def _command(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise _Bad(f"found {describe(value)}, expected a command for /bin/sh that prints the password")
    return value


def _user(value: Any) -> str:
    text = _text(value)
    if ":" in text:
        raise _Bad(f"found {describe(text)}: a user name in HTTP cannot contain a colon")  # RFC 7617, section 2
    return text


def _password(value: Any) -> Secret:
    if not isinstance(value, Secret) or not value or _CONTROL.search(value.reveal()):
        raise _Bad("the password is empty, is not text, or contains a line break or another control character")
    return value


def _flag(value: Any) -> bool:
    # A value from the command line is text, even for true or false.
    if not isinstance(value, bool) and str(value).lower() not in ("true", "false"):
        raise _Bad(f"found {describe(value)}, expected true or false")
    return str(value).lower() == "true"


def _duration(value: Any) -> float:
    try:
        return seconds(value)
    except ValueError as error:
        raise _Bad(str(error)) from error


def _url(value: Any) -> str:
    """Parse ``bmc07``, ``10.0.0.7:8443``, ``2001:db8::7`` or a URL to ``https://NAME[:PORT]``."""
    text = _text(value)
    if "@" in text:  # This check comes first, because other messages would show the login.
        raise _Bad(
            f"the address contains a login; put the user into {USER}, and the password into {PASSWORD} or "
            f"{PASSWORD_COMMAND}"
        )
    try:
        parts = urlsplit(text if "://" in text else f"https://{_bracketed(text)}")
        name, port = (parts.hostname or "").lower(), parts.port
    except ValueError as error:
        raise _Bad(f"found {describe(text)}, expected a name or an address, optionally with :PORT, or a URL") from error
    if parts.scheme not in ("https", "http"):
        raise _Bad(f"found {describe(text)}, expected a URL that begins with https://")
    if parts.query or parts.fragment or parts.path.rstrip("/") not in _PATHS:
        raise _Bad(
            f"found {describe(text)}, expected only the BMC's address; remove the path and the query (the Redfish "
            "service is at /redfish/v1)"
        )
    if not (_HOST.fullmatch(name) or _is_ipv6(name)):
        raise _Bad(f"found {describe(text)}, which contains no valid name or address")
    return f"{parts.scheme}://{f'[{name}]' if ':' in name else name}{f':{port}' if port is not None else ''}"


def _bracketed(text: str) -> str:
    return f"[{text}]" if _is_ipv6(text) else text


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.IPv6Address(text).scope_id is None
    except ValueError:
        return False


_READERS: Mapping[str, Callable[[Any], Any]] = {
    ADDRESS: _url,
    USER: _user,
    PASSWORD: _password,
    PASSWORD_COMMAND: _command,
    CA: _text,
    SYSTEM: _text,
    TIMEOUT: _duration,
    CONSOLE: _text,
    INSECURE: _flag,
}
