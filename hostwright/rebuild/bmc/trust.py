"""Which server is the BMC: its address, and the certificates by which it is known."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
from requests.adapters import HTTPAdapter

from hostwright.common.userpaths import expanded
from hostwright.rebuild.bmc.errors import BmcError
from hostwright.rebuild.bmc.settings import CA, Bmc


class Http(requests.Session):
    """Follows a redirection on the server itself only: another one would be shown the token."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """See ``requests.Session``."""
        target: str | None = super().get_redirect_target(resp)
        same = target is not None and origin(urljoin(resp.url, target)) == origin(resp.url)
        return target if same else None


class Pinned(HTTPAdapter):
    """Wants one certificate, whatever name it is made out to: BMCs sign their own, for names like ``iDRAC``."""

    def __init__(self, fingerprint: str):
        self._fingerprint = fingerprint
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """See ``HTTPAdapter``."""
        super().init_poolmanager(*args, **options, assert_fingerprint=self._fingerprint)


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, name and port of a URL; a URL that has none is nobody's."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ("", "", 0)
    return parts.scheme, (parts.hostname or "").lower(), port or (443 if parts.scheme == "https" else 80)


def path_of(url: str) -> str:
    """A URL's path alone: many a BMC gives its own name in a URL, which nobody else can resolve."""
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def authorities(bmc: Bmc) -> str | bool:
    """What requests takes for ``verify``: the inventory's PEM file, else what this machine trusts (not the list that
    requests brings along, in which a site's own authority is not)."""
    if not bmc.ca:
        paths = ssl.get_default_verify_paths()
        return paths.cafile or paths.capath or True
    path = expanded(bmc.ca)
    try:
        ssl.create_default_context(cafile=str(path))
    except OSError as error:  # an ssl.SSLError, for a file without certificates, is one as well
        why = error.strerror if not isinstance(error, ssl.SSLError) else "it contains no PEM certificate"
        raise BmcError(bmc.host, f"{CA}: {path} cannot be used: {why}") from error
    return str(path)


def only_certificate(ca: str) -> str:
    """The SHA-256 fingerprint of the one certificate in a PEM file; empty where there are more, or no file."""
    if not ca:
        return ""
    text = expanded(ca).read_text(encoding="ascii", errors="replace")
    certificates = tuple(_blocks(text))
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificates[0])).hexdigest() if len(certificates) == 1 else ""


def _blocks(text: str) -> Iterator[str]:
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    for block in text.split(begin)[1:]:
        yield f"{begin}{block.partition(end)[0]}{end}"
