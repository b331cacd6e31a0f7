"""For tests: the certificate's state, brought about and asked by the machine's own shell."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from hostwright.plan.model import Change
from hostwright.plan.testing import changes_of
from hostwright.standard.roles.base.states.certificate import OwnCertificate


def made(folder: Path, names: tuple[str, ...]) -> OwnCertificate:
    """The state, after its step ran."""
    state = OwnCertificate(str(folder), names, "proxy")
    (change,) = changes_of(state, {"problems": "absent\n"})
    assert isinstance(change, Change)
    run(change.steps[0].script)
    return state


def problems(state: OwnCertificate) -> list[str]:
    """What the state's probe says."""
    return run(state.probes()[0].script).splitlines()


#: the host's addresses: those of this machine change while other tests bring hosts up
ADDRESSES = "ip() { echo '2: eth0    inet 192.0.2.7/24 brd 192.0.2.255 scope global eth0'; }\n"


def run(script: str) -> str:
    done = subprocess.run(("sh", "-euc", f"{ADDRESSES}{script}"), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ended(state: OwnCertificate, days: int) -> None:
    """Replace the certificate by one of the same authority that ends in so many days."""
    authority = (Path(state.directory) / "authority.pem").read_bytes()
    own = Path(state.file).read_bytes()
    issuer, old = x509.load_pem_x509_certificate(authority), x509.load_pem_x509_certificate(own)
    builder = (
        x509.CertificateBuilder()
        .subject_name(old.subject)
        .issuer_name(issuer.subject)
        .public_key(old.public_key())
        .serial_number(1)
        .not_valid_before(datetime.now(UTC) - timedelta(days=365))
        .not_valid_after(datetime.now(UTC) + timedelta(days=days))
    )
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    key = load_pem_private_key(authority, None)
    new = builder.sign(key, hashes.SHA256())  # type: ignore[arg-type]  # an EC key
    from cryptography.hazmat.primitives.serialization import Encoding

    private = own[: own.index(b"-----BEGIN CERTIFICATE")]
    Path(state.file).write_bytes(private + new.public_bytes(Encoding.PEM))
