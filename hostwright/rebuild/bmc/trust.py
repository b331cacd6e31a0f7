"""Checks that a link leads to the BMC, and that the BMC has a trusted certificate."""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Iterator
from typing import Any

from requests.adapters import HTTPAdapter

from hostwright.common.userpaths import expanded
from hostwright.rebuild.bmc.errors import BmcError
from hostwright.rebuild.bmc.settings import CA, Bmc

LONGEST_LINK = 2048  #: maximum number of characters of a link in a BMC's answer
#: pattern for percent-encoded characters of a URL path, except slashes, backslashes and control characters
_ENCODED = "%(?!2[Ff]|5[Cc]|[01]|7[Ff])[0-9A-Fa-f]{2}"
#: pattern for one character of a URL path (RFC 3986, section 3.3)
_CHARACTER = f"[A-Za-z0-9_~!$&'()*+,;=:@./-]|{_ENCODED}"
_LINK = re.compile(
    r"(?P<place>(?i:https?)://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?=/|\Z))?"
    rf"(?P<path>/(?!/)(?:{_CHARACTER})*)?(?P<query>\?(?:{_CHARACTER}|\?)*)?(?:#[!-~]*)?"
)
_DOTS = (".", "..")


class Pinned(HTTPAdapter):
    """HTTPS adapter that accepts one certificate by its fingerprint, whatever name the certificate has."""

    def __init__(self, fingerprint: str):
        self._fingerprint = fingerprint
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Require the fingerprint for connections."""
        super().init_poolmanager(*args, **options, assert_fingerprint=self._fingerprint)


def path_on(url: str, link: object, *, any_name: bool = False) -> str:
    """Return path and query of ``link`` if it leads to the BMC at ``url``; else empty.

    ``any_name`` accepts any server name in the link, because many BMCs have another name in their settings.
    """
    if not isinstance(link, str) or len(link) > LONGEST_LINK:
        return ""
    match = _LINK.fullmatch(link)
    if match is None or not (match["place"] or match["path"]):
        return ""
    path = match["path"] or "/"
    if any(segment in _DOTS for segment in re.split("[/;]", re.sub("%2[Ee]", ".", path))):
        return ""
    if match["place"] and not any_name and _place(match["place"]) != _place(url):
        return ""
    return path + (match["query"] or "")


def _place(url: str) -> str:
    url = url.lower()
    default = ":443" if url.startswith("https:") else ":80"
    return url if re.search(r":\d+$", url) else url + default


def authorities(bmc: Bmc) -> str | bool:
    """Return the argument ``verify`` for requests: the PEM file in the inventory, else this machine's CA certificates.

    Raises ``BmcError`` for an unusable PEM file.
    """
    if not bmc.ca:
        paths = ssl.get_default_verify_paths()
        return paths.cafile or paths.capath or True
    path = expanded(bmc.ca)
    try:
        ssl.create_default_context(cafile=str(path))
    except OSError as error:  # A file without certificates raises ssl.SSLError, which is an OSError.
        why = error.strerror if not isinstance(error, ssl.SSLError) else "it contains no PEM certificate"
        raise BmcError(bmc.host, f"{CA}: {path} cannot be used: {why}") from error
    return str(path)


def only_certificate(ca: str) -> str:
    """SHA-256 fingerprint of the only certificate in the PEM file ``ca``; empty without one or with several."""
    if not ca:
        return ""
    text = expanded(ca).read_text(encoding="ascii", errors="replace")
    certificates = tuple(_blocks(text))
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificates[0])).hexdigest() if len(certificates) == 1 else ""


def _blocks(text: str) -> Iterator[str]:
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    for block in text.split(begin)[1:]:
        yield f"{begin}{block.partition(end)[0]}{end}"
