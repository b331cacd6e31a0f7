"""The role proxy: plans for workspaces."""

from __future__ import annotations

import re
import string
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from hostwright.common.errors import InputError
from hostwright.plan.model import Change, Facts
from hostwright.plan.roles.role import RoleContext
from hostwright.plan.testing import changes_of, facts_for
from hostwright.resources.files.files import Absent, File
from hostwright.standard.roles.base.states.certificate import OwnCertificate
from hostwright.standard.roles.proxy import CONF, TOKENS, Proxy, proxy
from hostwright.standard.roles.proxy.states.reloaded import ReloadedAfter
from hostwright.standard.roles.proxy.states.tokens import PageTokens
from hostwright.standard.roles.workspaces import Workspaces, workspaces
from tests.unit.roles.proxy.nginxes import configuration

USERS = {"alice": {"uid": 2001}, "bob": {"uid": 2002}}
SPACES = {
    "alice-lab": {"user": "alice", "kind": "jupyter", "port": 21001},
    "bob-lab": {"user": "bob", "kind": "jupyter", "port": 21002},
    "bob-box": {"user": "alice", "kind": "tensorboard", "port": 21003},
    "bob-run": {"user": "bob", "kind": "batch", "command": ["true"]},
}
READ = TypeAdapter(Workspaces)


def declared(users: Any = None, containers: Any = None) -> Workspaces:
    return READ.validate_python({"users": users or USERS, "containers": containers or SPACES})


def locations(text: str) -> dict[str, str]:
    return dict(re.findall(r"location (/\S+/) \{(?:[^{}]|\{[^{}]*\})*?proxy_pass (\S+);", text))


def states(v: Proxy, many: Workspaces) -> tuple[Any, ...]:
    return proxy.resources(v, RoleContext(stack=None, roles=((workspaces, many),)))  # type: ignore[arg-type]


def test_a_path_for_each_page_and_a_token_before_those_that_ask_for_none() -> None:
    text = configuration(Proxy(), declared())
    assert locations(text) == {
        "/alice/alice-lab/": "http://127.0.0.1:21001",
        "/alice/bob-box/": "http://127.0.0.1:21003",
        "/bob/bob-lab/": "http://127.0.0.1:21002",
    }
    gate = text.partition("location /alice/bob-box/ {")[2].partition("proxy_pass")[0]
    assert "$hostwright_asked_bob_box" in gate
    assert "if ($hostwright_known_bob_box = 0) {\n      return 403" in gate
    for word in ("$hostwright_asked_", "$hostwright_known_"):
        assert text.count(word) == gate.count(word) == 1
    assert text.index(f"include {TOKENS};") < text.index("server {")


NAMED = Proxy(names=("gpu01.example.org",), people_domain="gpu01.example.org")


def test_people_have_a_name_each_and_the_hosts_own_has_no_page_of_theirs() -> None:
    """Browsers separate pages by host name, not by path."""
    servers = configuration(NAMED, declared()).split("\nserver {")[1:]
    found = {re.findall("server_name (.*);", server)[0]: set(locations(server)) for server in servers}
    assert found == {
        "gpu01.example.org": set(),
        "alice.gpu01.example.org": {"/alice/alice-lab/", "/alice/bob-box/"},
        "bob.gpu01.example.org": {"/bob/bob-lab/"},
    }
    assert [server.count("hostwright-workspaces.d") for server in servers] == [1, 0, 0]  # for the hub, for example
    (own,) = (state for state in states(NAMED, declared()) if isinstance(state, OwnCertificate))
    assert own.names == ("gpu01.example.org", "gpu01.example.org", "alice.gpu01.example.org", "bob.gpu01.example.org")


def notes(v: Proxy, many: Workspaces) -> list[str]:
    return [note for state in states(v, many) for note in state.notes(Facts({}))]


def test_a_plan_says_who_share_a_name() -> None:
    (note,) = notes(Proxy(), declared())
    assert note.startswith("the pages of alice, bob share one host name, so that a page of one user can act as another")
    assert "proxy_people_domain" in note
    assert notes(NAMED, declared()) == []
    assert notes(Proxy(), declared(containers={"alice-lab": SPACES["alice-lab"]})) == []


@pytest.mark.parametrize(
    "person, sentence",
    [
        (
            "gpu01",
            "proxy_people_domain: the host and gpu01's pages have the same name 'gpu01.example.org'; "
            "change people_domain, or rename one",
        ),
        ("bob_x", "proxy_people_domain: 'bob_x.example.org' is not a valid host name; rename bob_x in"),
        ("bob-", "proxy_people_domain: 'bob-.example.org' is not a valid host name; rename bob- in"),
    ],
)
def test_a_person_whose_name_cannot_be_that_of_a_page_is_refused(person: str, sentence: str) -> None:
    many = declared({person: {"uid": 2003}}, {"lab": {"user": person, "kind": "jupyter"}})
    with pytest.raises(InputError) as caught:
        states(Proxy(names=("GPU01.example.org",), people_domain="example.org"), many)
    assert str(caught.value).startswith(sentence)


def test_names_of_people_need_one_of_the_host() -> None:
    with pytest.raises(ValidationError, match="people_domain needs names"):
        TypeAdapter(Proxy).validate_python({"people_domain": "example.org"})


def test_a_host_whose_pages_all_ask_themselves_keeps_no_token_for_nginx() -> None:
    many = declared(containers={name: entry for name, entry in SPACES.items() if entry["kind"] == "jupyter"})
    assert TOKENS not in configuration(Proxy(), many)
    assert not any(isinstance(state, PageTokens) for state in states(Proxy(), many))
    assert any(isinstance(state, Absent) and state.path == TOKENS for state in states(Proxy(), many))


def test_other_tokens_are_a_reload() -> None:
    reloaded = next(state for state in states(Proxy(), declared()) if isinstance(state, ReloadedAfter))
    assert TOKENS in reloaded.files
    assert any(isinstance(state, PageTokens) for state in reloaded.inputs)


@pytest.mark.parametrize(
    "without",
    [
        declared(users={**USERS, "bob": {"uid": 2002, "left": True}}),
        declared(containers={name: entry for name, entry in SPACES.items() if entry["user"] != "bob"}),
    ],
)
def test_somebody_who_left_is_gone_with_one_change_of_the_inventory(without: Workspaces) -> None:
    """In the proxy here; in allocation and containers because they use the same workspaces."""
    text = configuration(Proxy(), without)
    assert list(locations(text)) == ["/alice/alice-lab/", "/alice/bob-box/"]
    assert "/bob/" not in text
    answers = {f"cat -- {CONF}": configuration(Proxy(), declared()), "stat": "regular file|644|root:root\n"}
    (change,) = changes_of([state for state in states(Proxy(), without) if isinstance(state, File)], answers)
    assert isinstance(change, Change)
    assert "-  location /bob/bob-lab/ {" in change.diff


def test_a_host_without_workspaces_answers_not_found_alone() -> None:
    assert locations(configuration(Proxy(), Workspaces())) == {}


def test_a_given_certificate_is_used_with_hsts_and_none_is_made() -> None:
    v = Proxy(certificate="/etc/ssl/site.crt", key="/etc/ssl/private/site.key")
    text = configuration(v, declared())
    assert "ssl_certificate /etc/ssl/site.crt;" in text
    assert "Strict-Transport-Security" in text
    assert not any(type(state).__name__ == "OwnCertificate" for state in states(v, declared()))
    assert "Strict-Transport-Security" not in configuration(Proxy(), declared())


def test_certificate_and_key_belong_together() -> None:
    with pytest.raises(ValidationError, match="only one of certificate and key is set"):
        TypeAdapter(Proxy).validate_python({"certificate": "/etc/ssl/site.crt"})


def test_nginx_is_reloaded_and_never_restarted() -> None:
    reloaded = next(state for state in states(Proxy(), declared()) if isinstance(state, ReloadedAfter))
    facts = facts_for(reloaded, {"busctl": f"{CONF}\n", "problems": "", "stat -c": "regular file|644|root:root"})
    change = reloaded.plan(facts)
    assert isinstance(change, Change)
    assert change.have == "older than hostwright-workspaces.conf"
    script = change.steps[0].script
    assert "systemctl reload" in script
    assert "restart" not in script
    assert script.index("nginx -t") < script.index("systemctl reload")


def test_a_renewed_certificate_is_a_reload() -> None:
    reloaded = next(state for state in states(Proxy(), declared()) if isinstance(state, ReloadedAfter))
    text = configuration(Proxy(), declared())
    answers = {
        "busctl": "", "problems": "ends within 30 days", f"cat -- {CONF}": text,
        "stat -c '%F": "regular file|644|root:root",
    }  # fmt: skip
    change = reloaded.plan(facts_for(reloaded, answers))
    assert isinstance(change, Change)
    assert change.have == "at work with what is about to change"
    assert reloaded.plan(facts_for(reloaded, {**answers, "problems": ""})) is None


HOSTILE = st.text(alphabet=string.ascii_lowercase + "{};$\"'\\\n #/.:-_%\x00é", min_size=1, max_size=20)


@given(user=HOSTILE, name=HOSTILE, address=HOSTILE, path=HOSTILE)
def test_no_name_gets_anything_else_into_the_configuration(user: str, name: str, address: str, path: str) -> None:
    """Any value of an inventory is refused, or is one argument in nginx's configuration."""
    read_proxy = TypeAdapter(Proxy)
    try:
        many = READ.validate_python({"users": {user: {}}, "containers": {name: {"user": user, "kind": "jupyter"}}})
        v = read_proxy.validate_python({"names": [address], "certificate": f"/{path}", "key": f"/{path}"})
    except ValidationError:
        return
    text = configuration(v, many)
    ((location, target),) = locations(text).items()
    assert location == f"/{user}/{name}/"
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", target)
    plain = configuration(
        Proxy(names=("a",), certificate="/c", key="/c"),
        READ.validate_python({"users": {"u": {}}, "containers": {"n": {"user": "u", "kind": "jupyter"}}}),
    )
    shape = str.maketrans("", "", "".join(set(string.printable) - set("{};\"'#$\\")))
    assert text.translate(shape) == plain.translate(shape)
    assert len(text.split()) == len(plain.split())


@pytest.mark.parametrize("listen", ["443 default_server", "0", "70000000", "a:443", "[::]:443;", "unix:/x"])
def test_listen_is_a_port_or_an_address_with_one(listen: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Proxy).validate_python({"listen": [listen]})


def test_the_check_sees_the_whole_configuration_with_the_new_file(tmp_path: Path) -> None:
    """The check that the host runs before replacing the file, with a made-up nginx that shows its input."""
    check = next(state.check for state in states(Proxy(), declared()) if isinstance(state, File))
    new, programs = tmp_path / "new", tmp_path / "bin"
    new.write_text("new text\n")
    programs.mkdir()
    said = f"exec >{tmp_path}/said\necho $*\ncat {CONF}\nls /etc/nginx/sites-enabled\n"
    (programs / "nginx").write_text(f"#!/bin/sh\n{said}")
    (programs / "nginx").chmod(0o755)
    script = check % new
    made = "mount -t tmpfs none /etc && mkdir -p /etc/nginx/sites-enabled && : >/etc/nginx/sites-enabled/default"
    outer = f"{made} && {script}; status=$?; ls /etc/nginx; exit $status"
    if subprocess.run(("unshare", "-m", "true"), capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    done = subprocess.run(
        ("unshare", "-m", "sh", "-c", outer), capture_output=True, text=True, check=False,
        env={"PATH": f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "said").read_text() == "-t -q\nnew text\ndefault\n"
    assert done.stdout.split() == ["sites-enabled"]
