"""Certificate from an ACME authority: Let's Encrypt's test server Pebble, real dehydrated and a real nginx."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from pydantic import TypeAdapter, ValidationError

from hostwright.plan.model import Change
from hostwright.plan.roles.role import RoleContext
from hostwright.plan.testing import changes_of
from hostwright.resources.files.files import Absent, File
from hostwright.resources.system.services import Service
from hostwright.standard.roles.base.states.certificate import OwnCertificate
from hostwright.standard.roles.proxy import CONF, Proxy, proxy
from hostwright.standard.roles.proxy import acme as acme_role
from hostwright.standard.roles.proxy.acme import CERTIFICATE, DIRECTORY, PROGRAM, TIMER
from hostwright.standard.roles.proxy.states.acme import AcmeCertificate
from hostwright.standard.roles.proxy.states.reloaded import ReloadedAfter
from hostwright.standard.roles.workspaces import Workspaces, workspaces
from tests.lab.sshd import free_port
from tests.unit.roles.proxy import acmes, nginxes
from tests.unit.roles.proxy.acmes import Authority
from tests.unit.roles.proxy.nginxes import ADDRESS, running, written
from tests.unit.support.stubs import stub

NAMES = ("gpu01.example.org", "notebooks.example.org")
V = Proxy(names=NAMES, acme="https://acme.example/dir", acme_contact="admin@example.org")
READ = TypeAdapter(Proxy)


def states(v: Proxy = V) -> tuple[Any, ...]:
    return proxy.resources(v, RoleContext(stack=None, roles=((workspaces, Workspaces()),)))  # type: ignore[arg-type]


def text_of(path: str, v: Proxy = V) -> str:
    plain = (getattr(state, "resource", state) for state in states(v))
    return next(state.content for state in plain if isinstance(state, File) and state.path == path)


@dataclass
class Site:
    """A host that gets its certificate; ``nginx`` reads ``conf``, and ``systemctl`` reloads it."""

    folder: Path
    web: Path  #: nginx's directory
    v: Proxy
    http: int
    tls: int
    env: dict[str, str]

    @property
    def file(self) -> Path:
        return self.folder / "acme.pem"

    def placed(self, text: str) -> str:
        text = text.replace(DIRECTORY, str(self.folder)).replace("listen 80;", f"listen {ADDRESS}:{self.http};")
        return text.replace(PROGRAM, str(self.folder / "program"))

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ("sh", "-euc", script), env=self.env, capture_output=True, text=True, check=False, timeout=120
        )

    def problems(self) -> list[str]:
        return self.run(self.placed(self.state.probes()[0].script)).stdout.splitlines()

    @property
    def state(self) -> AcmeCertificate:
        return next(state for state in states(self.v) if isinstance(state, AcmeCertificate))

    def obtained(self) -> subprocess.CompletedProcess[str]:
        (change,) = changes_of(self.state, {"openssl": "absent\n"})
        assert isinstance(change, Change)
        return self.run(self.placed(change.steps[0].script))

    def renewed(self) -> subprocess.CompletedProcess[str]:
        return self.run(f"{self.folder}/program")

    def served(self) -> int:
        """Return the serial number of the certificate that nginx sends to a browser."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with (
            socket.create_connection((ADDRESS, self.tls), timeout=10) as plain,
            context.wrap_socket(plain, server_hostname=NAMES[0]) as tls,
        ):
            return x509.load_der_x509_certificate(tls.getpeercert(binary_form=True) or b"").serial_number

    def serial(self) -> int:
        return x509.load_pem_x509_certificate(self.file.read_bytes()).serial_number


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Authority, int]]:
    found, http = acmes.programs(tmp_path_factory), free_port()
    with acmes.authority(found, tmp_path_factory.mktemp("pebble"), http) as at_work:
        yield at_work, http


@pytest.fixture
def site(authority: tuple[Authority, int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    at_work, http = authority
    folder, web = tmp_path_factory.mktemp("host"), tmp_path_factory.mktemp("web")
    binary = nginxes.program(tmp_path_factory)
    env = stub(
        folder,
        nginx=f'exec {binary} -c {web}/nginx.conf -p {web} "$@"',
        systemctl=f'[ "$1" != reload ] || kill -HUP "$(cat {web}/pid)"',
    )
    env["PATH"] = f"{folder}/bin:{at_work.bin}:{os.environ['PATH']}"
    v = replace(V, acme=at_work.url, acme_authority=str(at_work.trusted), listen=(f"{ADDRESS}:{free_port()}",))
    here = Site(folder, web, v, http, int(v.listen[0].rpartition(":")[2]), env)
    (folder / "challenges").mkdir()
    for name in ("config", "domains.txt"):
        (folder / name).write_text(here.placed(text_of(f"{DIRECTORY}/{name}", v)))
    (folder / "program").write_text(here.placed(text_of(PROGRAM, v)))
    (folder / "program").chmod(0o755)
    with running(binary, web, here.placed(text_of(acme_role.CONF, v)), http, at_work.trusted):
        yield here


def test_a_certificate_is_obtained_served_renewed_and_served_again(site: Site) -> None:
    assert site.problems() == ["absent"]
    done = site.obtained()
    assert done.returncode == 0, done.stdout + done.stderr
    assert site.problems() == []
    assert oct(site.file.stat().st_mode)[-3:] == "600"
    certificate = x509.load_pem_x509_certificate(site.file.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert set(names.get_values_for_type(x509.DNSName)) == set(NAMES)

    written(site.web, site.placed(text_of(acme_role.CONF, site.v)) + site.placed(text_of(CONF, site.v)))
    assert site.run("systemctl reload nginx.service").returncode == 0
    _until(lambda: site.served() == site.serial())

    first = site.serial()
    assert site.renewed().returncode == 0
    assert site.serial() == first, "it is not due"
    with (site.folder / "config").open("a") as config:
        config.write("RENEW_DAYS=99999\n")
    done = site.renewed()
    assert done.returncode == 0, done.stdout + done.stderr
    assert site.serial() != first
    _until(lambda: site.served() == site.serial())


def _until(holds: Any) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            if holds():
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise AssertionError("nginx does not serve it")


def test_an_authority_that_cannot_reach_the_host_is_said_with_what_to_do(site: Site) -> None:
    (site.folder / "config").write_text((site.folder / "config").read_text().replace("challenges", "elsewhere"))
    (site.folder / "elsewhere").mkdir()
    done = site.obtained()
    assert done.returncode != 0
    assert "it must reach this host by each of proxy_names on port 80" in done.stderr
    assert not site.file.exists()


def test_an_authority_whose_https_is_not_trusted_is_said(site: Site) -> None:
    (site.folder / "config").write_text((site.folder / "config").read_text().replace("CURL_OPTS", "UNUSED"))
    done = site.obtained()
    assert done.returncode != 0
    assert "the ACME authority was not reached" in done.stderr
    assert not site.file.exists()


def test_what_is_wrong_with_it_is_said(site: Site) -> None:
    site.file.write_text("")
    site.file.chmod(0o644)
    assert site.problems() == ["others may read its key", "has ended or cannot be read"]


def test_the_role_makes_no_authority_of_its_own_and_reloads_after_a_renewal() -> None:
    many = states()
    assert not any(isinstance(state, OwnCertificate) for state in many)
    assert f"ssl_certificate {CERTIFICATE};" in text_of(CONF)
    assert "Strict-Transport-Security" in text_of(CONF)
    reloaded = next(state for state in many if isinstance(state, ReloadedAfter))
    assert CERTIFICATE in reloaded.files
    kinds = [type(getattr(state, "resource", state)).__name__ for state in many]
    assert kinds.index("AcmeCertificate") < max(place for place, kind in enumerate(kinds) if kind == "File")


def test_without_it_nothing_of_it_is_left_at_work() -> None:
    many = states(Proxy())
    assert acme_role.CONF in {state.path for state in many if isinstance(state, Absent)}
    assert Service(TIMER, running=False) in many


@pytest.mark.parametrize(
    "values, sentence",
    [
        ({"acme": "https://a.example/d"}, "acme needs names"),
        ({"acme": "https://a.example/d", "names": ["192.0.2.7"]}, "remove the address 192.0.2.7 from names"),
        (
            {"acme": "https://a.example/d", "names": ["a.example"], "certificate": "/c", "key": "/k"},
            "both certificate and acme are set",
        ),
        ({"acme": "http://a.example/d", "names": ["a.example"]}, "pattern"),
        ({"acme": 'https://a.example/"; rm -rf /', "names": ["a.example"]}, "pattern"),
        ({"acme": "https://a.example/d", "names": ["a.example"], "acme_contact": "a`id`@x.example"}, "pattern"),
    ],
)
def test_what_cannot_be_is_refused(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        READ.validate_python(values)
