"""Credentials of a lab's BMCs: one user and one certificate authority per lab."""

from __future__ import annotations

import datetime
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hostwright.common.secret import Secret
from lab.config import Lab
from lab.records import give_to_user, write_atomically

USER = "operator"
_VALID_FOR = datetime.timedelta(days=365)  # validity period of the lab's certificates, longer than any lab exists
_CLOCKS_DIFFER = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Client credentials for a lab's BMCs. The password is also in a file, for commands that print it."""

    user: str
    password: Secret
    password_file: Path  #: file with the password, mode 0600
    ca: Path  #: PEM file of the CA that signed the endpoint's certificate

    @classmethod
    def read(cls, lab: Lab) -> Credentials:
        """Read the credentials of ``lab``. Raises `OSError` if the lab has no BMCs."""
        password = lab.bmc / "password"
        return cls(USER, Secret(password.read_text().strip()), password, lab.bmc / "ca.pem")

    def admit(self, user: str, password: str) -> bool:
        """Return whether ``user`` and ``password`` are correct."""
        # Both comparisons take constant time. Otherwise the duration would reveal whether user or password is wrong.
        return (Secret(user) == Secret(self.user)) & (Secret(password) == self.password)


def ensure(lab: Lab) -> Credentials:
    """Return the lab's credentials. Password and certificates are created if missing."""
    lab.bmc.mkdir(exist_ok=True)
    password = lab.bmc / "password"
    if not password.exists():
        _write_private(password, secrets.token_urlsafe(18) + "\n")
    if not certificate(lab).exists():
        _make_certificates(lab)
    for path in (password, lab.bmc / "ca.pem"):
        give_to_user(path)
    return Credentials.read(lab)


def certificate(lab: Lab) -> Path:
    """Return the path of the PEM file with key and certificate of the Redfish endpoint.

    `ensure` writes this file last.
    """
    return lab.bmc / "server.pem"


def _make_certificates(lab: Lab) -> None:
    """Create a CA and the Redfish endpoint's certificate, and discard the CA's key."""
    authority, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = _name(f"Hostwright lab {lab.name}: authority of this lab's BMCs")
    root = (
        _certificate(issuer, issuer, authority.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(authority, hashes.SHA256())
    )
    leaf = (
        _certificate(_name(f"BMCs of lab {lab.name}"), issuer, key.public_key())
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(lab.gateway.ip)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False)
        .sign(authority, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()
    write_atomically(lab.bmc / "ca.pem", root.public_bytes(serialization.Encoding.PEM).decode())
    _write_private(certificate(lab), private + leaf.public_bytes(serialization.Encoding.PEM).decode())


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(now + _VALID_FOR)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _write_private(path: Path, text: str) -> None:
    """Replace ``path`` with a file that only the owner can read."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    fresh.write_text(text)
    fresh.rename(path)
