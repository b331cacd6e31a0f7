"""The certificate of a registry's authority, as text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class RegistryAuthority:
    """What people compare of a certificate."""

    fingerprint: str  #: SHA-256, as OpenSSL writes it
    ends: datetime


def authority_of(text: str) -> RegistryAuthority:
    """The one certificate of an authority in a text. Raises ``ValueError`` for any other, also with a key in it."""
    from cryptography import x509  # slow to import, and only hosts with a registry need it
    from cryptography.hazmat.primitives.hashes import SHA256

    if "PRIVATE KEY" in text:
        raise ValueError("it holds a private key, which belongs on the registry's host alone: give the certificate")
    try:
        certificates = x509.load_pem_x509_certificates(text.encode("ascii", "replace"))
    except ValueError:
        certificates = []
    if len(certificates) != 1:
        raise ValueError(
            f"expected the text of one certificate (-----BEGIN CERTIFICATE-----), found {len(certificates) or 'none'}"
        )
    try:
        is_authority = certificates[0].extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        is_authority = False
    if not is_authority:
        raise ValueError("it is a certificate, and not that of an authority, which signed it: give that one")
    ends = certificates[0].not_valid_after_utc
    return RegistryAuthority(certificates[0].fingerprint(SHA256()).hex(":").upper(), ends)
