"""The role registry: states of its host and of others, trusted certificates, and their distribution."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter, ValidationError

from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.inventory import bind, load
from hostwright.plan.roles.role import RoleContext
from hostwright.resources.files.files import File
from hostwright.resources.packages.packages import Debs
from hostwright.resources.system.services import Disturbing
from hostwright.standard.roles.base.states.certificate import OwnCertificate
from hostwright.standard.roles.registry import CONF, Registry, registry, trusting
from hostwright.standard.roles.registry.audit import audit_values
from hostwright.standard.roles.registry.authority import RegistryAuthority, authority_of
from tests.unit.cli.shell.test_shell_words import parsed, refused

READ = TypeAdapter(Registry)


def states(**variables: Any) -> tuple[Any, ...]:
    return registry.resources(READ.validate_python(variables), RoleContext(stack=None))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an authority's certificate, a leaf certificate, and a key."""
    folder = tmp_path_factory.mktemp("certificates")
    made = {}
    for name, is_authority in (("authority", "TRUE"), ("leaf", "FALSE")):
        words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        words += ["-subj", f"/CN={name}", "-days", "9", "-addext", f"basicConstraints=critical,CA:{is_authority}"]
        subprocess.run([*words, "-keyout", folder / "key", "-out", folder / name], check=True, capture_output=True)
        made[name] = (folder / name).read_text()
    return {**made, "key": (folder / "key").read_text()}


def test_its_host_has_tls_and_its_configuration_before_the_package_starts_it() -> None:
    many = [state.resource if isinstance(state, Disturbing) else state for state in states(at="reg01:5000", serve=True)]
    kinds = [type(state).__name__ for state in many]
    package = next(i for i, state in enumerate(many) if isinstance(state, Debs) and "docker-registry" in state.packages)
    own = next(i for i, state in enumerate(many) if isinstance(state, OwnCertificate))
    assert kinds[package + 1 :] == ["Service", "RestartedAfter"]
    assert own < package
    conf = next(state for state in many[:package] if isinstance(state, File) and state.path == CONF)
    said = yaml.safe_load(conf.content)
    assert said["http"]["addr"] == ":5000"
    assert said["http"]["tls"] == {
        "certificate": "/run/hostwright-registry/certificate.pem",
        "key": "/run/hostwright-registry/key.pem",
        "minimumtls": "tls1.2",
    }
    assert said["storage"]["delete"] == {"enabled": False}
    assert many[own].names == ("reg01",)
    (drop_in,) = (state for state in many[:package] if isinstance(state, File) and state.path.endswith(".conf"))
    assert (
        "ExecStart=\nExecStart=/usr/bin/docker-registry serve /etc/docker/registry/hostwright.yml\n" in drop_in.content
    )


def test_a_given_certificate_is_used_and_none_is_made() -> None:
    many = states(at="reg01:5000", serve=True, certificate="/etc/ssl/site.crt", key="/etc/ssl/private/site.key")
    assert not any(isinstance(state, OwnCertificate) for state in many)
    text = "".join(getattr(getattr(state, "resource", state), "content", "") for state in many)
    assert " /etc/ssl/private/site.key /run/hostwright-registry/key.pem" in text


def test_other_hosts_get_the_authority_where_docker_reads_it(certificates: dict[str, str]) -> None:
    (state,) = states(at="10.0.0.9:5000", authority=certificates["authority"])
    assert (state.path, state.content) == ("/etc/docker/certs.d/10.0.0.9:5000/ca.crt", certificates["authority"])
    assert states() == ()
    assert list(audit_values(READ.validate_python({"at": "a:1"}), RoleContext(stack=None))) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "at",
    [
        "reg01",
        "reg01:0",
        "https://reg01:5000",
        "reg01:5000/path",
        "Reg01:5000",
        "-a:5000",
        "../x:5000",
        "a:123456",
        "a b:5",
    ],
)
def test_what_docker_would_read_as_something_else_is_refused(at: str) -> None:
    with pytest.raises(ValidationError):
        READ.validate_python({"at": at})


def test_variables_that_make_no_sense_are_refused(certificates: dict[str, str]) -> None:
    for wrong, sentence in (
        ({"serve": True}, "`at` is missing"),
        ({"at": "a:1", "key": "/x"}, "only one of certificate and key is set"),
        ({"at": "a:1", "authority": "nonsense"}, "expected one certificate"),
        ({"at": "a:1", "authority": certificates["leaf"]}, "not a CA certificate"),
        ({"at": "a:1", "authority": certificates["authority"] * 2}, "found 2"),
        ({"at": "a:1", "authority": certificates["authority"] + certificates["key"]}, "contains a private key"),
    ):
        with pytest.raises(ValidationError, match=sentence):
            READ.validate_python(wrong)


def test_the_fingerprint_is_the_one_that_openssl_prints(certificates: dict[str, str]) -> None:
    done = subprocess.run(
        ["openssl", "x509", "-noout", "-fingerprint", "-sha256"],
        input=certificates["authority"], text=True, capture_output=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip().rpartition("=")[2] == authority_of(certificates["authority"]).fingerprint


INVENTORY = """\
all:
  vars: {hostwright_roles: [registry], registry_at: 'reg01:5000'}
  hosts: {gpu01: , reg01: {registry_serve: true}}
"""


class Shell:
    """A root shell that returns one file."""

    def __init__(self, text: str):
        self._text = text

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, script: str, *, timeout_s: float, failure: str) -> Any:
        assert "authority.crt" in script
        return subprocess.CompletedProcess([], 0, self._text.encode())


@pytest.fixture
def site(tmp_path: Path, certificates: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "hosts.yml").write_text(INVENTORY)
    given = {"text": certificates["authority"]}
    monkeypatch.setattr(trusting.Connections, "connect", lambda _self, _target: Shell(given["text"]))
    return tmp_path


def trust(site: Path, host: str = "reg01") -> int:
    return trusting.trust(Request(host, inventory=(str(site),)))


def test_the_authority_comes_into_the_inventory_for_all_hosts(
    site: Path, certificates: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert trust(site) == 0
    assert authority_of(certificates["authority"]).fingerprint in capsys.readouterr().out
    for host in load(site).hosts.values():
        assert bind(Registry, "registry", host).authority == certificates["authority"]
    before = (site / "registry-authority.yml").read_text()
    assert trust(site) == 0
    assert (site / "registry-authority.yml").read_text() == before


def test_what_was_read_is_a_document(
    site: Path, certificates: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert trusting.trust(Request("reg01", inventory=(str(site),), json=True)) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["host"]) == ("authority", "reg01")
    assert document["file"] == str(site / "registry-authority.yml")
    assert document["fingerprint"] == authority_of(certificates["authority"]).fingerprint


def test_a_fingerprint_is_printed_as_it_is(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A terminal library would replace ``:CD:`` and ``:AB:`` with emoji."""
    known = RegistryAuthority("01:CD:AB:02", datetime(2036, 1, 1, tzinfo=UTC))
    monkeypatch.setattr(trusting, "authority_of", lambda _text: known)
    trust(site)
    assert "  SHA-256 01:CD:AB:02\n" in capsys.readouterr().out


def test_it_is_not_written_over_what_somebody_else_wrote(site: Path) -> None:
    (site / "registry-authority.yml").write_text("all: {}  # mine\n")
    with pytest.raises(InputError, match="not written by Hostwright"):
        trust(site)
    assert (site / "registry-authority.yml").read_text() == "all: {}  # mine\n"


@pytest.mark.parametrize(
    ("host", "sentence"),
    [("gpu01", "gpu01: it has no registry"), ("", "expected exactly one host"), ("all", "expected exactly one host")],
)
def test_only_a_host_with_a_registry_can_be_asked(site: Path, host: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        trust(site, host)
    assert not (site / "registry-authority.yml").exists()


def test_another_file_with_another_authority_is_named(site: Path, certificates: dict[str, str]) -> None:
    (site / "host_vars").mkdir()
    text = certificates["authority"].replace("\n", "\n  ")
    (site / "host_vars/gpu01.yml").write_text(f"registry_authority: |\n  {text}\n")
    with pytest.raises(InputError, match=r"host_vars/gpu01\.yml.* sets another registry_authority for gpu01"):
        trust(site)


def test_the_host_that_is_trusted_stands_without_its_option() -> None:
    (verb,) = parsed("registry.trust gpu01")
    assert verb.args["host"].value == "gpu01"
    assert refused("registry.trust gpu01 gpu02") == "registry.trust takes a single host, found 'gpu01' and 'gpu02'"
