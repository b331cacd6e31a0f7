"""Types and validators for the values in an installation's settings.

Validators are strict, because values are inserted into YAML, preseed files, shell scripts and kernel command lines.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator

from hostwright.common.durations import seconds
from hostwright.common.secret import Secret

SHOWN = 60  #: maximum number of characters that a message shows of an invalid value
KEY_CHARACTERS = 16384  #: maximum number of characters of a public key line. A line with a 16384-bit RSA key has 2,800.
#: key types that sshd accepts (sshd(8)), without the obsolete ssh-dss
KEY_TYPES = (
    "ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com",
)  # fmt: skip
#: user names that installers refuse, because Debian or Ubuntu already has such a user or group
RESERVED_USERS = frozenset((
    "root", "daemon", "bin", "sys", "sync", "games", "man", "lp", "mail", "news", "uucp", "proxy", "www-data",
    "backup", "list", "irc", "gnats", "nobody", "adm", "tty", "disk", "kmem", "dialout", "fax", "voice", "cdrom",
    "floppy", "tape", "sudo", "audio", "dip", "operator", "src", "shadow", "utmp", "video", "sasl", "plugdev",
    "staff", "users", "nogroup", "admin", "sshd", "ssh", "messagebus", "netdev", "crontab", "syslog", "kvm",
    "render", "input",
))  # fmt: skip
_HASH = re.compile(r"\$(?:5|6|7|y|gy|2[abxy])\$[./A-Za-z0-9$=,+-]{13,250}", re.ASCII)
#: pattern for Ansible templates in a value; Hostwright does not evaluate these templates
_TEMPLATE = re.compile(r"\{\{\s*(inventory_hostname|ansible_)\w*.*?\}\}")


def _wrong(value: object, expected: str) -> ValueError:
    shown = repr(value)
    return ValueError(f"found {shown if len(shown) <= SHOWN else f'{shown[:SHOWN]}…'}, expected {expected}")


def _form(pattern: str, expected: str) -> AfterValidator:
    compiled = re.compile(pattern, re.ASCII)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            raise _wrong(text, expected)
        return text

    return AfterValidator(check)


def is_hostname(text: str) -> bool:
    """Whether the text is a hostname without dots (RFC 1123)."""
    return re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", text, re.ASCII | re.IGNORECASE) is not None


def endpoint(text: str) -> tuple[str, int]:
    """Parse ``10.0.0.1:8098`` or ``[fd00::1]:8098`` to address and port. Raises ``ValueError`` for another format."""
    expected = "an address and a port of this machine that hosts can reach, like 10.0.0.1:8098"
    address, colon, port = text.rpartition(":")
    bare = address[1:-1] if address.startswith("[") and address.endswith("]") else address
    try:
        parsed = ipaddress.ip_address(bare)
    except ValueError:
        raise _wrong(text, expected) from None
    if (parsed.version == 6) != (bare != address) or not re.fullmatch(r"[1-9][0-9]{0,4}", port, re.ASCII):
        raise _wrong(text, expected)
    if not colon or int(port) > 65535 or parsed.is_unspecified or parsed.is_multicast:
        raise _wrong(text, expected)
    return str(parsed), int(port)


def _endpoint(text: str) -> str:
    endpoint(text)
    return text


def _url(text: str) -> str:
    expected = "a URL like http://mirror.example/ubuntu"
    if not re.fullmatch(r"https?://[A-Za-z0-9._~:/?#\[\]@!&()*+,;=%-]{1,500}", text, re.ASCII):
        raise _wrong(text, expected)
    try:
        parts = urlsplit(text)
        named = parts.hostname, parts.port
    except ValueError:
        raise _wrong(text, expected) from None
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            "the URL contains a user or a password, which every user of the new host could read; remove it"
        )
    if not named[0]:
        raise _wrong(text, expected)
    return text


def _address(text: str) -> str:
    expected = "an address with its prefix, like 10.0.0.7/24, or 'dhcp'"
    if text == "dhcp":
        return text
    try:
        interface = ipaddress.ip_interface(text)
    except ValueError:
        raise _wrong(text, expected) from None
    network = interface.network
    alone = network.num_addresses > 2 and interface.ip in (network.network_address, network.broadcast_address)
    if "/" not in text or alone or interface.ip.is_unspecified or interface.ip.is_multicast:
        raise _wrong(text, expected)
    return str(interface.with_prefixlen)


def _ip(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise _wrong(text, "an IP address like 10.0.0.1") from None


def _peers(text: str) -> str:
    if text in ("", "any"):
        return text
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise _wrong(text, "an address or network like 10.0.0.7 or 10.0.0.0/24, or 'any'") from None


def _public_key(text: str) -> str:
    expected = "one public key as in a .pub file: type, base64, comment; no options before it"
    line = text.strip()
    fields = line.split(" ", 2)
    if len(fields) < 2 or fields[0] not in KEY_TYPES or len(line) > KEY_CHARACTERS or not line.isprintable():
        raise _wrong(text, expected)
    try:
        blob = base64.b64decode(fields[1], validate=True)
    except (binascii.Error, ValueError):
        raise _wrong(text, expected) from None
    kind = fields[0].encode()
    if not blob.startswith(len(kind).to_bytes(4, "big") + kind) or len(blob) < len(kind) + 8:
        raise _wrong(text, expected)
    return line


def _hash(value: Any) -> Any:
    """Validate a password hash of crypt(5). Errors never contain an invalid value, which may be the password itself."""
    text = value.reveal() if isinstance(value, Secret) else value
    if not isinstance(text, str) or not _HASH.fullmatch(text):
        raise ValueError("the value (not shown) is not a password hash; create one with `mkpasswd -m sha-512`")
    return Secret(text)


def command_text(text: str) -> str:
    """Return ``text``, a command for ``/bin/sh``. Raises ``ValueError`` if it has a template or no shell can run it."""
    if template := _TEMPLATE.search(text):
        raise ValueError(f"found the template {template[0]!r}, which is not rendered here")
    if not text.strip() or "\0" in text or not _encodable(text):
        raise _wrong(text, "a command for /bin/sh")
    return text


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _duration(value: Any) -> float:
    return seconds(value)


Hostname = Annotated[str, AfterValidator(lambda text: text if not text or is_hostname(text) else _no_hostname(text))]
User = Annotated[str, _form(r"|[a-z_][a-z0-9_-]{0,31}", "a user name: lowercase letters, digits, _ and -")]
Release = Annotated[str, _form(r"[0-9]{1,2}(\.[0-9]{1,2})?", "a release's number in quotes, like '20.04' or '11'")]
Endpoint = Annotated[str, AfterValidator(_endpoint)]
OptionalEndpoint = Annotated[str, AfterValidator(lambda text: text and _endpoint(text))]
Path = Annotated[
    str, _form(r"|[A-Za-z0-9][A-Za-z0-9_-]{0,62}([./][A-Za-z0-9_-]{1,62}){0,7}", "a path like seeds/gpu07")
]
Peers = Annotated[str, AfterValidator(_peers)]
Url = Annotated[str, AfterValidator(lambda text: text and _url(text))]
Device = Annotated[
    str, _form(r"|/dev(/[A-Za-z0-9_:+=@-][A-Za-z0-9._:+=@-]*)+", "a disk like /dev/nvme0n1 or /dev/disk/by-id/…")
]
DiskText = Annotated[str, _form(r"|[A-Za-z0-9 ._:+*?\[\]/=-]{1,128}", "letters, digits, spaces, . _ - and * ?")]
Address = Annotated[str, AfterValidator(_address)]
Ip = Annotated[str, AfterValidator(lambda text: text and _ip(text))]
Interface = Annotated[str, _form(r"|[A-Za-z0-9][A-Za-z0-9._-]{0,14}", "a network interface's name like eno1")]
Mac = Annotated[
    str, AfterValidator(str.lower), _form(r"|[0-9a-f]{2}(:[0-9a-f]{2}){5}", "a MAC address like 0c:42:a1:00:00:07")
]
PublicKey = Annotated[str, AfterValidator(_public_key)]
Hash = Annotated[Secret | None, BeforeValidator(_hash)]
Timezone = Annotated[str, _form(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}", "a time zone like Europe/Berlin")]
Locale = Annotated[str, _form(r"[a-z]{2,3}_[A-Z]{2}(\.[A-Za-z0-9-]{3,12})?(@[a-z]+)?", "a locale like en_US.UTF-8")]
Keyboard = Annotated[str, _form(r"[a-z]{2,8}", "a keyboard's layout like us or de")]
Package = Annotated[str, _form(r"[a-z0-9][a-z0-9+.-]{1,100}", "a Debian package's name")]
KernelArgument = Annotated[str, _form(r"[A-Za-z0-9_.][A-Za-z0-9_.,:=/@+-]{0,200}", "one argument like console=ttyS0")]
Command = Annotated[str, AfterValidator(command_text)]
Duration = Annotated[float, BeforeValidator(_duration)]


def _no_hostname(text: str) -> str:
    raise _wrong(text, "a host's name without its domain, like gpu07")
