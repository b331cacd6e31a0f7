"""CA certificate (PEM text) of an image registry."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class RegistryAuthority:
    """Properties of a CA certificate by which people compare it."""

    fingerprint: str  #: SHA-256 fingerprint in OpenSSL's notation
    ends: datetime


def authority_of(text: str) -> RegistryAuthority:
    """Parse exactly one CA certificate in PEM. Raises ``ValueError`` for any other text, such as a private key."""
    from cryptography import x509  # The import is slow, and only hosts with a registry need the module.
    from cryptography.hazmat.primitives.hashes import SHA256

    if "PRIVATE KEY" in text:
        raise ValueError("contains a private key; give only the certificate")
    try:
        certificates = x509.load_pem_x509_certificates(text.encode("ascii", "replace"))
    except ValueError:
        certificates = []
    if len(certificates) != 1:
        raise ValueError(f"expected one certificate (-----BEGIN CERTIFICATE-----), found {len(certificates) or 'none'}")
    try:
        is_authority = certificates[0].extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        is_authority = False
    if not is_authority:
        raise ValueError("not a CA certificate; give the certificate of the authority that signed it")
    ends = certificates[0].not_valid_after_utc
    return RegistryAuthority(certificates[0].fingerprint(SHA256()).hex(":").upper(), ends)
