"""Hosts with equal settings in ssh_config: ``ssh -G`` runs for two of them, and every host gets the right output."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.common.errors import InputError
from hostwright.transport.routing import openssh
from hostwright.transport.routing.openssh import Destination, OpenSsh
from hostwright.transport.routing.stanzas import Stanzas

FLEET = [f"gpu{number:02}" for number in range(1, 21)]


class Counting(OpenSsh):
    """Counts runs of ``ssh -G``."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def _ask(self, destination: Destination, ssh_config: Path | None) -> tuple[str, list[str]]:
        self.asked.append(destination.alias)
        return super()._ask(destination, ssh_config)


def runs(tmp_path: Path, text: str, *, names: list[str] = FLEET, user: str = "", port: int = 0) -> list[str]:
    """The hosts for which ``ssh -G`` runs; checks that every host has the output of its own run."""
    file = tmp_path / "config"
    file.write_text(text.replace("<dir>", str(tmp_path)))
    client = Counting()
    for name in names:
        destination = Destination(name, user, port)
        assert client.answer(destination, file) == OpenSsh().answer(destination, file)
    return client.asked


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Host gpu01\nUser ops\n",
        "Host *\n User ops\n IdentityFile ~/.ssh/%h\n",
        "Host gpu*\n HostName %h.cluster.example.org\nHost *\n User ops\n",
        "Host gpu*\n HostName bastion\n",
        "Host gpu* !gpu2\n Port 2222\n",
        "Host=gpu??\n Port=2222\n",
        "Host login1 login2\n User me\nHost *\n ProxyJump bastion\n",
        "Host *\n ControlPath ~/.ssh/%C\n RemoteCommand echo %h\n",
        "Match all\n User ops\n",
        "Match final all\n User ops\n",
        "Include <dir>/none/*\nHost *\n Port 2022\n",
        "User gpu\nHost *\n HostKeyAlias %k\n",
    ],
)
def test_a_fleet_that_nothing_tells_apart_is_asked_about_three_times(tmp_path: Path, text: str) -> None:
    """The first run lists the files; two further outputs show that only the name differs."""
    assert runs(tmp_path, text) == FLEET[:3]


@pytest.mark.parametrize(
    "text",
    [
        'Match exec "test %h = gpu07"\n Port 2222\n',
        "Match host gpu07\n Port 2222\n",
        "Match final host gpu07\n Port 2222\n",
        "Match user ops\n Port 2222\n",
        "CanonicalizeHostname yes\n",
        '"Host" gpu07\n Port 2222\n',
        'Host "gpu07"\n Port 2222\n',
        'Host = "gpu0"*\n Port 2222\n',
        "Host gpu07 # the old one\n Port 2222\n",
        "Match final all\nHost gpu*\n HostName %h.example.org\n",
        "Include <dir>/stanzas-%h\n",
    ],
)
def test_where_more_than_host_lines_may_tell_hosts_apart_each_is_asked_about(tmp_path: Path, text: str) -> None:
    (tmp_path / "stanzas-gpu07").write_text("Port 2222\n")
    assert runs(tmp_path, text) == FLEET


def test_hosts_that_a_stanza_names_are_asked_about_for_themselves(tmp_path: Path) -> None:
    text = "Host gpu05\n Port 2222\nHost gpu1?\n User ops\nHost *\n Compression yes\n"
    first, one, rest = FLEET[:3], ["gpu05"], ["gpu10", "gpu11"]
    assert runs(tmp_path, text) == [*first, *one, *rest]


def test_a_jump_host_is_asked_about_for_itself_where_it_would_lead_to_itself(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("Host *\n ProxyJump bastion\n")
    client = Counting()
    for name in FLEET:
        client.answer(Destination(name), file)
    with pytest.raises(InputError, match="jumphost loop via bastion"):
        client.answer(Destination("bastion"), file)


def test_each_user_and_port_is_asked_about(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("Host *\n IdentityFile ~/.ssh/%r\n")
    client = Counting()
    for number, name in enumerate(FLEET):
        destination = Destination(name, ("ops", "root")[number % 2], 2200 + number % 2)
        assert client.answer(destination, file) == OpenSsh().answer(destination, file)
    assert len(client.asked) == 5


@pytest.mark.parametrize(
    "name", ["127.1", "0x7f000001", "10.0.0.010", "fe80::1", "::FFFF:10.0.0.1", "GPU01", "2130706433"]
)
def test_an_address_that_is_printed_otherwise_is_asked_about(tmp_path: Path, name: str) -> None:
    assert runs(tmp_path, "", names=[*FLEET[:3], name]) == [*FLEET[:3], name]


def test_addresses_share_an_answer(tmp_path: Path) -> None:
    addresses = [f"192.0.2.{number}" for number in range(1, 20)]
    assert runs(tmp_path, "Host 192.0.2.*\n User ops\n", names=addresses) == addresses[:3]


def test_a_mistake_is_each_hosts_own(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("Host gpu1*\n Port none\n")
    client = OpenSsh()
    for name in FLEET:
        try:
            client.answer(Destination(name), file)
        except InputError as error:
            assert "config" in str(error)
    with pytest.raises(InputError, match="ssh cannot read ssh_config"):
        client.answer(Destination("gpu19"), file)


def test_few_run_at_once_and_one_that_waits_keeps_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ``Match exec`` that waits for a directory service frees its slot after a while."""
    monkeypatch.setattr(openssh, "_WORKING_S", 0.05)
    monkeypatch.setattr(openssh, "_LEARNING_S", 0.05)
    monkeypatch.setattr(openssh, "_AT_ONCE", 2)
    file, gate = tmp_path / "config", tmp_path / "gate"
    file.write_text(f'Match exec "case %h in gpu1?) until test -e {gate}; do sleep 0.05; done;; esac"\n Port 2222\n')
    client = OpenSsh()
    with ThreadPoolExecutor(len(FLEET)) as threads:
        slow = [threads.submit(client.answer, Destination(name), file) for name in FLEET if name.startswith("gpu1")]
        quick = [threads.submit(client.answer, Destination(name), file) for name in FLEET if name.startswith("gpu0")]
        assert all("port 2222" in one.result(60) for one in quick)
        assert not any(one.done() for one in slow)
        gate.touch()
        assert all("port 2222" in one.result(60) for one in slow)


def test_a_fleet_that_asks_all_at_once_is_asked_about_three_times(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("Host *\n Port 2222\n")
    client = Counting()
    with ThreadPoolExecutor(64) as threads:
        answers = list(threads.map(lambda number: client.answer(Destination(f"h{number}"), file), range(64)))
    assert all(f"hostname h{number}\n" in answer for number, answer in enumerate(answers))
    assert len(client.asked) == 3


def test_no_more_than_so_many_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config"
    file.write_text('Match exec "true"\n Port 2222\n')
    client, lock, alive = OpenSsh(), threading.Lock(), [0, 0]
    real = openssh.subprocess.Popen.communicate

    def communicate(*given: object, **named: object) -> object:
        with lock:
            alive[0] += 1
            alive[1] = max(alive)
        try:
            return real(*given, **named)  # type: ignore[arg-type]
        finally:
            with lock:
                alive[0] -= 1

    monkeypatch.setattr(openssh.subprocess.Popen, "communicate", communicate)
    monkeypatch.setattr(openssh, "_WORKING_S", 60.0)
    with ThreadPoolExecutor(20) as threads:
        list(threads.map(lambda name: client.answer(Destination(name), file), FLEET * 2))
    assert 1 <= alive[1] <= openssh._AT_ONCE


WORDS = st.sampled_from(
    ["gpu01", "gpu02", "gpu1?", "gpu*", "*", "!gpu02", "!gpu1?", "login1", "*.example.org", "g?u*1", "a"]
)
NAMES = st.sampled_from(
    ["gpu01", "gpu02", "gpu10", "gpu11", "gpu12", "login1", "a.example.org", "b.example.org", "a", "b1"]
)
LINES = st.sampled_from(
    ["User ops", "Port 2022", "HostName %h.example.org", "HostName a", "HostKeyAlias gpu01", "ProxyJump login1",
     "IdentityFile ~/.ssh/%n", "UserKnownHostsFile /srv/%h", "ControlPath /run/%C"]
)  # fmt: skip
STANZA = st.builds(
    lambda begin, words, lines: "\n".join([begin.format(" ".join(words)), *(f" {line}" for line in lines)]),
    st.sampled_from(["Host {}", "host={}", "HOST\t{}", "# Host {}\nHost *", "Match all", "Match final all"]),
    st.lists(WORDS, min_size=1, max_size=3),
    st.lists(LINES, max_size=3),
)


@given(stanzas=st.lists(STANZA, max_size=4), names=st.lists(NAMES, min_size=4, max_size=9, unique=True))
@settings(max_examples=25)
def test_every_answer_is_that_of_ssh(
    tmp_path_factory: pytest.TempPathFactory, stanzas: list[str], names: list[str]
) -> None:
    file = tmp_path_factory.mktemp("config") / "config"
    file.write_text("\n".join(stanzas) + "\n")
    client = OpenSsh()
    for name in names:
        assert said(client, name, file) == said(OpenSsh(), name, file)


def said(client: OpenSsh, name: str, file: Path) -> str:
    """The output for a host, or the error."""
    try:
        return client.answer(Destination(name), file)
    except InputError as error:
        return f"error: {error}"


@given(st.text('Hhostmac MATCH=*?!"#\t\r\f\v.\n\0%include'))
def test_any_text_is_read(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.mktemp("config") / "config"
    file.write_text(text)
    stanzas = Stanzas.read([str(file)])
    assert stanzas is None or stanzas.applying("gpu01") is not None
