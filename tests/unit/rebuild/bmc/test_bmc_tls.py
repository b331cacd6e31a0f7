"""Certificates of BMCs: which are taken, which are not, and what is said of them. Nothing is sent to the others."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hostwright.common.secret import Secret
from hostwright.rebuild.bmc import Bmc, BmcError, BmcUnreachable, Power, open_bmc
from tests.unit.support.redfish import PASSWORD, USER, Machine, redfish

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)
HERE = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
ELSEWHERE = x509.SubjectAlternativeName([x509.DNSName("idrac")])


class Authority:
    """Signs certificates, its own first."""

    def __init__(self, folder: Path, name: str = "authority"):
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self.pem = folder / f"{name}.pem"
        certificate = self._builder(self._name, self._key, NOW + DAY).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.pem.write_bytes(self._signed(certificate))

    def server(
        self, names: x509.SubjectAlternativeName, until: datetime.datetime = NOW + DAY
    ) -> tuple[ssl.SSLContext, Path]:
        """A server's context with a certificate for these names, and that certificate's file."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server")])
        builder = self._builder(subject, key, until).add_extension(names, critical=False)
        return self._context(key, self._signed(builder))

    def self_signed(self, names: x509.SubjectAlternativeName) -> tuple[ssl.SSLContext, Path]:
        """The same with a certificate that signs itself, as a BMC's does when it comes from the factory."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "idrac")])
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - 3 * DAY)
            .not_valid_after(NOW + DAY)
            .add_extension(names, critical=False)
        )
        return self._context(key, builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, until: datetime.datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - 3 * DAY)
            .not_valid_after(until)
        )

    def _signed(self, builder: x509.CertificateBuilder) -> bytes:
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _context(self, key: ec.EllipticCurvePrivateKey, certificate: bytes) -> tuple[ssl.SSLContext, Path]:
        path, secret = self._folder / "server.pem", self._folder / "server.key"
        path.write_bytes(certificate)
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path, secret)
        return context, path


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def power(machine: Machine, context: ssl.SSLContext, ca: Path | str = "") -> Power:
    with (
        redfish(machine, context) as url,
        open_bmc(Bmc("gpu07", url, USER, Secret(PASSWORD), ca=str(ca), timeout_s=30)) as controller,
    ):
        return controller.power()


def refused(context: ssl.SSLContext, ca: Path | str = "") -> str:
    machine = Machine()
    with pytest.raises(BmcUnreachable) as caught:
        power(machine, context, ca)
    assert machine.asked == []
    return str(caught.value)


def test_a_certificate_of_nobody_known_is_refused(authority: Authority) -> None:
    context, _ = authority.self_signed(HERE)
    sentence = refused(context)
    assert "is not trusted (self-signed certificate)" in sentence
    assert "as a PEM file in hostwright_bmc_ca" in sentence


def test_a_certificate_that_signs_itself_is_taken_when_it_is_given(authority: Authority) -> None:
    context, certificate = authority.self_signed(HERE)
    assert power(Machine(), context, certificate) is Power.ON


def test_pinned_certificate_may_have_another_name(authority: Authority) -> None:
    context, certificate = authority.self_signed(ELSEWHERE)
    assert power(Machine(), context, certificate) is Power.ON


def test_a_certificate_of_a_known_authority_is_taken(authority: Authority) -> None:
    context, _ = authority.server(HERE)
    assert power(Machine(), context, authority.pem) is Power.ON


def test_a_known_authority_does_not_make_another_name_right(authority: Authority) -> None:
    context, _ = authority.server(ELSEWHERE)
    assert "is issued for another name" in refused(context, authority.pem)


def test_another_authority_is_not_enough(authority: Authority, tmp_path: Path) -> None:
    context, _ = authority.server(HERE)
    assert "is not trusted" in refused(context, Authority(tmp_path, "other").pem)


def test_a_certificate_that_has_expired_is_refused(authority: Authority) -> None:
    context, _ = authority.server(HERE, until=NOW - DAY)
    assert "certificate has expired" in refused(context, authority.pem)


@pytest.mark.parametrize("content", [None, "no certificate\n"])
def test_a_file_without_certificates_is_a_mistake_of_the_inventory(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "bmc.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BmcError, match=r"hostwright_bmc_ca: .*bmc\.pem cannot be used: "):
        open_bmc(Bmc("gpu07", "https://127.0.0.1:9", USER, Secret(PASSWORD), ca=str(path)))


def test_the_environment_does_not_say_whom_to_trust(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    context, _ = authority.server(HERE)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority.pem))
    assert "is not trusted" in refused(context)
