"""Certificate authority of this machine's seed servers: created on first use, stored in the state directory.

The authority can certify addresses but not names, so a thief of its key could impersonate a seed server, but not a
package mirror. Each seed server gets a new certificate with a new key. That key is not stored.
"""

from __future__ import annotations

import hashlib
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING

from hostwright.common.errors import HostwrightError
from hostwright.common.places import ANOTHER_STATE, PRIVATE_FILE, make_folder, refused, write_whole
from hostwright.common.secret import Secret
from hostwright.rebuild.install.tls.bootpart import boot_part

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.x509 import Certificate, CertificateBuilder, KeyUsage, Name

#: folder of the certificate authority in the state directory, and name of the file with its key and certificate
FOLDER, KEY = "seeds", "authority.pem"
#: name of the file in ``FOLDER`` with the authority's certificate, and name of the initial ramdisk with it
CERTIFICATE, PART = "hostwright-ca.pem", "hostwright-ca.cpio.gz"
#: validity of the authority's certificate; afterwards, boot loaders need a new initial ramdisk
AUTHORITY_LASTS = timedelta(days=5 * 365)
SERVER_LASTS = timedelta(days=30)  #: validity of a seed server's TLS certificate
#: start of the validity of all certificates, early because a host with a flat battery may have a wrong clock
BEGINS = datetime(2000, 1, 1, tzinfo=UTC)
ADDRESSES = ("0.0.0.0/0", "::/0")
#: only DNS name that the authority may certify; no host can have a name in ``.invalid`` (RFC 6761)
NO_NAME = "hostwright.invalid"
OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class Authority:
    """The certificate authority of this machine, and its files in ``folder``."""

    folder: Path
    certificate: Certificate
    key: EllipticCurvePrivateKey = field(repr=False)

    @property
    def certificate_file(self) -> Path:
        """Path of the authority's certificate in PEM."""
        return self.folder / CERTIFICATE

    @property
    def part(self) -> Path:
        """Path of the initial ramdisk with the certificate, for the kernel of an installer."""
        return self.folder / PART

    @property
    def until(self) -> str:
        """Last day on which the authority's certificate is valid."""
        return f"{self.certificate.not_valid_after_utc:%Y-%m-%d}"

    def context(self, address: str) -> ssl.SSLContext:
        """Return a TLS context with a new certificate for a server at ``address``.

        Raises ``HostwrightError`` if a temporary file cannot be written.
        """
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.minimum_version = ssl.TLSVersion.TLSv1_2
        # The file contains a private key; NamedTemporaryFile makes it readable only by this user.
        with _told(self.folder), tempfile.NamedTemporaryFile(dir=self.folder) as file:
            file.write(self._server(address).reveal().encode())
            file.flush()
            tls.load_cert_chain(file.name)
        return tls

    def _server(self, address: str) -> Secret:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = _new_key()
        issued = (
            _builder("hostwright seed server", self.certificate.subject, key.public_key(), SERVER_LASTS)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return _pem(key, issued)


def open_authority(root: Path) -> Authority:
    """Read this machine's authority from the state directory ``root``, or create it.

    Raises ``HostwrightError`` if other users can read the authority's key, if its certificate expires soon, or if its
    files are unusable.
    """
    from filelock import FileLock

    folder = root / FOLDER
    file = folder / KEY
    with _told(folder):
        make_folder(folder)
        with FileLock(folder / ".lock"):
            if not file.exists():
                write_whole(file, _new_authority().reveal().encode(), PRIVATE_FILE)
            authority = _read(file)
            public = _public_pem(authority.certificate)
            files = {CERTIFICATE: public, PART: boot_part(public, subject_hash(authority.certificate))}
            for name, content in files.items():
                if not (folder / name).exists() or (folder / name).read_bytes() != content:
                    write_whole(folder / name, content, mode=0o644)
    return authority


def subject_hash(certificate: Certificate) -> str:
    """Return the file name (without ``.0``) under which OpenSSL finds ``certificate`` in a directory."""
    encoded = certificate.subject.public_bytes()
    return hashlib.sha1(encoded[2:], usedforsecurity=False).digest()[3::-1].hex()


def _read(file: Path) -> Authority:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificate

    again = "remove the file, run the command again, and give your boot loaders the new certificate"
    if file.stat().st_mode & OTHERS:
        raise HostwrightError(f"{file} is accessible to other users, who could impersonate your seed server: {again}")
    content = file.read_bytes()
    try:
        key, certificate = load_pem_private_key(content, None), load_pem_x509_certificate(content)
    except ValueError as error:
        raise HostwrightError(f"{file} does not contain a key and its certificate: {again}") from error
    if not isinstance(key, EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise HostwrightError(f"{file} contains a certificate of another key: {again}")
    if certificate.not_valid_after_utc - datetime.now(UTC) < SERVER_LASTS:
        raise HostwrightError(f"{file} is valid only until {certificate.not_valid_after_utc:%Y-%m-%d}: {again}")
    return Authority(file.parent, certificate, key)


def _new_authority() -> Secret:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    key = _new_key()
    known_by = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    # An installer may trust several authorities, so each authority needs a unique name.
    name = f"hostwright seeds {known_by.digest.hex()[:12]}"
    permitted = [x509.DNSName(NO_NAME), *(x509.IPAddress(ip_network(network)) for network in ADDRESSES)]
    made = (
        _builder(name, _name(name), key.public_key(), AUTHORITY_LASTS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.NameConstraints(permitted, None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _pem(key, made)


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _name(common: str) -> Name:
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common)])


def _builder(name: str, issuer: Name, key: EllipticCurvePublicKey, lasts: timedelta) -> CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(BEGINS)
        .not_valid_after(datetime.now(UTC) + lasts)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs: bool) -> KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _pem(key: EllipticCurvePrivateKey, certificate: Certificate) -> Secret:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Secret((private + _public_pem(certificate)).decode())


def _public_pem(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or folder
        sentence = f"seeds cannot be served over HTTPS: {where}: {refused(error, ANOTHER_STATE)}"
        raise HostwrightError(sentence) from error
