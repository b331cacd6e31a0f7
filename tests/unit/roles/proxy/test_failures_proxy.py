"""Faults in nginx's served pages are found by this machine's shell, openssl and ss, and classified by the rules."""

from __future__ import annotations

import string
import subprocess
from contextlib import closing, suppress
from pathlib import Path
from socket import create_server

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from hostwright.audit.failures import FailureRule
from hostwright.audit.judging.context import Unread
from hostwright.plan.model import Answer
from hostwright.standard.roles.proxy import CONF, Proxy
from hostwright.standard.roles.proxy.failures import FAILURES, SERVED, UNIT, UNITS, ended, without_workspace
from hostwright.standard.roles.workspaces import Workspaces
from tests.unit.roles.base.states.certificates import ended as ends
from tests.unit.roles.base.states.certificates import made
from tests.unit.roles.proxy.nginxes import configuration
from tests.unit.support.auditcontexts import evidence, look_at, show

SIGNED = [rule for rule in FAILURES if rule.sign]
PAGES = {"alice-lab": {"user": "alice", "kind": "jupyter"}, "bob-lab": {"user": "bob", "kind": "jupyter"}}


def served(folder: Path, *ports: int, certificate: str = "/nowhere/host.pem") -> list[str]:
    """Return the probe's output with the role's configuration for workspaces at these ports."""
    containers = {name: {**page, "port": port} for (name, page), port in zip(PAGES.items(), ports, strict=False)}
    declared = TypeAdapter(Workspaces).validate_python(
        {"users": {"alice": {"uid": 2001}, "bob": {"uid": 2002}}, "containers": containers}
    )
    conf = folder / "workspaces.conf"
    conf.write_text(configuration(Proxy(), declared).replace("/var/lib/hostwright/proxy/host.pem", certificate))
    script = SERVED.script.replace(CONF, str(conf))
    assert CONF not in script
    done = subprocess.run(("sh", "-euc", script), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_a_path_whose_port_is_silent_is_named_and_one_that_answers_is_not(tmp_path: Path) -> None:
    own = made(tmp_path, ("gpu01",))
    with closing(create_server(("127.0.0.1", 0))) as alice, closing(create_server(("127.0.0.1", 0))) as bob:
        ports = alice.getsockname()[1], bob.getsockname()[1]
        assert served(tmp_path, *ports, certificate=own.file) == []
        bob.close()
        lines = served(tmp_path, *ports, certificate=own.file)
    assert lines == [f"silent /bob/bob-lab/: nothing listens on 127.0.0.1:{ports[1]}"]
    assert list(without_workspace(look_at({SERVED: "\n".join(lines)}))) == [lines[0].partition(" ")[2]]


@pytest.mark.parametrize("days, word", [(15, ""), (13, "ending"), (-1, "ended")])
def test_a_certificate_is_named_two_weeks_before_its_end_and_after_it(tmp_path: Path, days: int, word: str) -> None:
    own = made(tmp_path, ("gpu01",))
    ends(own, days)
    lines = served(tmp_path, certificate=own.file)
    assert [line.partition("=")[0] for line in lines] == ([f"{word} {own.file}: notAfter"] if word else [])


def test_a_certificate_that_is_no_file_or_none_has_ended(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("nothing of the kind")
    for path in ("/nowhere/host.pem", f"{tmp_path}/text"):
        (line,) = served(tmp_path, certificate=path)
        assert line.startswith(f"ended {path}: ")
        assert list(ended(look_at({SERVED: line})))


def test_a_host_without_the_role_has_nothing_to_say() -> None:
    done = subprocess.run(("sh", "-euc", SERVED.script), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    "name, line",
    [
        ("proxy-port-taken", "nginx: [emerg] bind() to 0.0.0.0:443 failed (98: Address already in use)"),
        ("proxy-without-ipv6", "nginx: [emerg] socket() [::]:80 failed (97: Address family not supported by protocol)"),
        (
            "proxy-certificate-unusable",
            'nginx: [emerg] cannot load certificate "/etc/ssl/x.crt": BIO_new_file() failed (SSL: error:80000002)',
        ),
    ],
)
def test_a_failed_nginx_is_explained_by_its_journal_and_by_nothing_else(name: str, line: str) -> None:
    failed = show(UNIT, "failed", "failed", result="exit-code")
    journal = f"{UNIT}: Starting A high performance web server...\n{UNIT}: {line}\n"
    assert evidence(name, {UNITS.states: failed, UNITS.journals: journal}) == [line]
    for other in {rule.name for rule in SIGNED if rule.sign and UNITS.states in rule.sign.probes} - {name}:
        assert evidence(other, {UNITS.states: failed, UNITS.journals: journal}) == []
    assert evidence(name, {UNITS.states: show(UNIT), UNITS.journals: journal}) == [], "an older start failed"
    assert evidence(name, {UNITS.states: failed, UNITS.journals: None}) == [], "the journal was not asked"


@pytest.mark.parametrize("rule", SIGNED, ids=lambda rule: rule.name)
def test_nothing_is_said_of_a_host_that_was_not_asked(rule: FailureRule) -> None:
    assert rule.sign
    with pytest.raises(Unread):
        evidence(rule.name, dict.fromkeys(rule.sign.probes))


@pytest.mark.parametrize("rule", SIGNED, ids=lambda rule: rule.name)
@given(text=st.text(alphabet=string.printable + "\x1b\x00²\u202e", max_size=300), status=st.sampled_from([0, 1, 124]))
def test_garbage_never_raises(rule: FailureRule, text: str, status: int) -> None:
    assert rule.sign
    with suppress(Unread):
        evidence(rule.name, dict.fromkeys(rule.sign.probes, Answer(status, text)))
