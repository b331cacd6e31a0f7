"""``invoke trust`` with a server that ends the connection after the key exchange."""

from __future__ import annotations

import io
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import paramiko
import pytest

from hostwright.cli.exits import run
from hostwright.cli.tasks.restore import trust
from hostwright.common.errors import Unreachable
from hostwright.common.request import Request
from hostwright.inventory import Host
from hostwright.transport import Options, connect
from hostwright.transport.identity.hostkeys import HostKeyMismatch
from hostwright.transport.identity.keys import HostKey, KeyPair, generate
from hostwright.transport.identity.keyscan import scan_key
from tests.lab.listening import Listener
from tests.lab.sshd import free_port
from tests.unit.support.hostkeys import host_key

TRUSTED, REFUSED, BAD = 0, 1, 2
OLD, OTHER = host_key(0), host_key(1)


class Server:
    """An SSH server with one key, on a port of this machine. It rejects and records all logins."""

    def __init__(self, *pairs: paramiko.PKey):
        self._pairs = pairs
        self._open: list[paramiko.Transport] = []
        self.logins: list[str] = []
        self._listener = Listener(self._meet)
        self.port = self._listener.port

    def _meet(self, connection: socket.socket) -> None:
        transport = paramiko.Transport(connection)
        self._open.append(transport)
        for key in self._pairs:
            transport.add_server_key(key)
        transport.start_server(event=threading.Event(), server=_Refusing(self.logins))  # returns at once

    def close(self) -> None:
        self._listener.close()
        for transport in self._open:
            transport.close()


class _Refusing(paramiko.ServerInterface):
    def __init__(self, logins: list[str]):
        self._logins = logins

    def get_allowed_auths(self, username: str) -> str:
        self._logins.append(username)
        return "publickey"


def private(pair: KeyPair) -> paramiko.PKey:
    return paramiko.Ed25519Key.from_private_key(io.StringIO(pair.private.reveal()))


@pytest.fixture(scope="module")
def pair() -> KeyPair:
    return generate()


@pytest.fixture(scope="module")
def server(pair: KeyPair) -> Iterator[Server]:
    running = Server(private(pair), paramiko.ECDSAKey.generate())
    yield running
    running.close()


class Site:
    """An inventory of hosts with different names for the same server, and their known keys."""

    def __init__(self, folder: Path, port: int):
        self.known_hosts = folder / "known_hosts"
        self.port = port
        self._folder = folder
        self.variables: dict[str, Any] = {}

    def know(self, *lines: str) -> None:
        self.known_hosts.write_text("".join(f"{line}\n" for line in lines))

    def line(self, key: HostKey) -> str:
        return f"[127.0.0.1]:{self.port} {key.line}"

    @property
    def host(self) -> Host:
        return Host("gpu07", address="127.0.0.1", port=self.port, user="root", known_hosts=str(self.known_hosts))

    def trust(self, hosts: str = "gpu07", *, as_json: bool = False, **options: Any) -> int:
        common = {
            "ansible_host": "127.0.0.1",
            "ansible_port": self.port,
            "hostwright_known_hosts": str(self.known_hosts),
            **self.variables,
        }
        both = {"gpu07": None, "gpu08": {"ansible_host": "localhost"}}
        inventory = self._folder / "hosts.yml"
        inventory.write_text(json.dumps({"all": {"hosts": both, "vars": common}}))
        return run(lambda: trust(Request(hosts, inventory=(str(inventory),), json=as_json), **options))


@pytest.fixture
def site(tmp_path: Path, server: Server) -> Site:
    return Site(tmp_path, server.port)


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """The output on one line, because a narrow terminal wraps it."""

    def both() -> str:
        printed = capsys.readouterr()
        return " ".join((printed.out + printed.err).split())

    return both


OPTIONS = Options(ssh_config=Path(os.devnull), use_agent=False, connect_timeout_s=20)


def test_the_key_is_shown_without_a_login(site: Site, server: Server, pair: KeyPair) -> None:
    assert scan_key(site.host, OPTIONS) == pair.public
    assert server.logins == []


def test_a_kind_that_is_known_is_asked_for_first(site: Site) -> None:
    site.know(f"[127.0.0.1]:{site.port} ecdsa-sha2-nistp256 {paramiko.ECDSAKey.generate().get_base64()}")
    assert scan_key(site.host, OPTIONS).key_type == "ecdsa-sha2-nistp256"


def test_scanning_a_closed_port_is_unreachable() -> None:
    port = free_port()
    with pytest.raises(Unreachable, match=rf"gpu07: 127\.0\.0\.1:{port} refuses the connection"):
        scan_key(Host("gpu07", address="127.0.0.1", port=port), OPTIONS)


def test_a_silent_server_ends_at_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = Host("gpu07", address="127.0.0.1", port=silent.getsockname()[1], connect_timeout=0.3)
        with pytest.raises(Unreachable, match=r"no answer from 127\.0\.0\.1:\d+ within 0\.3 s"):
            scan_key(host, OPTIONS)


def test_a_changed_key_says_trust_and_carries_both(site: Site, pair: KeyPair) -> None:
    site.know(site.line(OLD))
    with pytest.raises(HostKeyMismatch, match="`invoke trust --hosts gpu07`;") as caught:
        connect(site.host, OPTIONS)
    assert OLD.fingerprint in str(caught.value)
    assert pair.public.fingerprint in str(caught.value)
    assert caught.value.offered == pair.public
    assert [entry.blob for entry in caught.value.known] == [OLD.blob]


def test_the_right_fingerprint_replaces_the_old_key(site: Site, pair: KeyPair, told: Callable[[], str]) -> None:
    site.know(f"gpu09 {OTHER.line}", site.line(OLD))
    assert site.trust(fingerprint=pair.public.fingerprint) == TRUSTED
    assert site.known_hosts.read_text() == f"gpu09 {OTHER.line}\n{site.line(pair.public)}\n"
    line = f"gpu07 {OLD} → {pair.public} by the fingerprint that was given in {site.known_hosts}"
    assert line in told()
    with pytest.raises(Unreachable, match="the login at") as caught:
        connect(site.host, OPTIONS)
    assert not isinstance(caught.value, HostKeyMismatch)


def test_a_wrong_fingerprint_changes_nothing(site: Site, pair: KeyPair, told: Callable[[], str]) -> None:
    site.know(site.line(OLD))
    assert site.trust(fingerprint=OTHER.fingerprint) == REFUSED
    assert site.known_hosts.read_text() == f"{site.line(OLD)}\n"
    said = told()
    assert all(key.fingerprint in said for key in (OLD, OTHER, pair.public))


def test_a_wrong_fingerprint_is_refused_for_a_known_key_too(site: Site, pair: KeyPair) -> None:
    site.know(site.line(pair.public))
    assert site.trust(fingerprint=OTHER.fingerprint) == REFUSED


def test_a_known_key_is_said_to_be_known(site: Site, pair: KeyPair, told: Callable[[], str]) -> None:
    site.know(site.line(pair.public))
    site.variables["hostwright_host_keys"] = "exit 1"
    before = site.known_hosts.stat()
    assert site.trust() == TRUSTED
    assert os.path.samestat(site.known_hosts.stat(), before)
    assert f"gpu07 already known: {pair.public}; nothing was changed" in told()


def test_a_revoked_key_is_refused_whoever_says_that_it_is_right(site: Site, pair: KeyPair) -> None:
    site.know(f"@revoked * {pair.public.line}", site.line(pair.public))
    assert site.trust(fingerprint=pair.public.fingerprint) == REFUSED
    assert site.known_hosts.read_text() == f"@revoked * {pair.public.line}\n{site.line(pair.public)}\n"


def test_several_hosts_by_their_consoles_one_of_which_disagrees(
    site: Site, pair: KeyPair, capsys: pytest.CaptureFixture[str]
) -> None:
    site.know(site.line(OLD), f"[localhost]:{site.port} {OLD.line}")
    site.variables["hostwright_host_keys"] = (
        f"case $HOSTWRIGHT_HOST in gpu07) echo {pair.public.line}; echo {OTHER.line};; *) echo {OTHER.line};; esac"
    )
    assert site.trust(hosts="gpu07,gpu08", as_json=True) == REFUSED
    answer = json.loads(capsys.readouterr().out)
    assert answer["hosts"] == [
        {
            "host": "gpu07",
            "result": "trusted",
            "before": [{"key_type": "ssh-ed25519", "fingerprint": OLD.fingerprint, "where": f"{site.known_hosts}:1"}],
            "now": [{"key_type": "ssh-ed25519", "fingerprint": key.fingerprint} for key in (pair.public, OTHER)],
            "source": "the host's console (hostwright_host_keys)",
            "files": [str(site.known_hosts)],
        }
    ]
    assert [(error["host"], error["kind"]) for error in answer["errors"]] == [("gpu08", "Refused")]
    assert site.known_hosts.read_text().splitlines() == [
        f"[localhost]:{site.port} {OLD.line}",
        site.line(pair.public),
        site.line(OTHER),
    ]


def test_without_a_terminal_both_keys_are_shown_and_nothing_changes(
    site: Site, pair: KeyPair, told: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    site.know(site.line(OLD))
    assert site.trust() == REFUSED
    said = told()
    assert OLD.fingerprint in said
    assert pair.public.fingerprint in said
    assert site.known_hosts.read_text() == f"{site.line(OLD)}\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "status"), [("yes\n", TRUSTED), ("y\n", REFUSED), ("", REFUSED)])
def test_in_a_terminal_the_operator_is_asked(
    site: Site, pair: KeyPair, monkeypatch: pytest.MonkeyPatch, answer: str, status: int
) -> None:
    shown = Terminal()
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("sys.stderr", shown)
    site.know(site.line(OLD))
    assert site.trust() == status
    question = shown.getvalue().partition("Write yes")[0]
    assert OLD.fingerprint in question
    assert pair.public.fingerprint in question
    assert site.known_hosts.read_text() == f"{site.line(pair.public if status == TRUSTED else OLD)}\n"


def test_forgetting_asks_no_host(tmp_path: Path, told: Callable[[], str]) -> None:
    site = Site(tmp_path, free_port())
    site.know(site.line(OLD), f"gpu09 {OTHER.line}")
    site.variables["hostwright_host_keys"] = "exit 1"
    assert site.trust(forget=True) == TRUSTED
    assert site.known_hosts.read_text() == f"gpu09 {OTHER.line}\n"
    assert f"gpu07 {OLD} → no key in {site.known_hosts}" in told()
    assert site.trust(forget=True) == TRUSTED
    assert "gpu07 no key; nothing was changed" in told()
    assert site.trust() == REFUSED
    assert "refuses the connection" in told()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fingerprint": "SHA256:x"}, "expected SHA256: and 43 characters"),
        ({"fingerprint": OLD.fingerprint, "hosts": "gpu07,gpu08"}, "is for a single host, but --hosts selects 2 hosts"),
        ({"fingerprint": OLD.fingerprint, "forget": True}, "pass only one of them"),
        ({"hosts": ""}, "no hosts are named"),
    ],
)
def test_bad_options_change_nothing(site: Site, told: Callable[[], str], options: dict[str, Any], said: str) -> None:
    site.know(site.line(OLD))
    assert site.trust(**options) == BAD
    assert said in told()
    assert site.known_hosts.read_text() == f"{site.line(OLD)}\n"


def test_a_bad_console_command_is_named_before_any_host_is_asked(site: Site, told: Callable[[], str]) -> None:
    site.know(site.line(OLD))
    site.variables["hostwright_host_keys"] = ["a", "list"]
    assert site.trust(hosts="gpu07,gpu08") == BAD
    said = told()
    assert said.count("hostwright_host_keys: found") == 1
    assert "hosts.yml:1" in said


def test_what_a_console_prints_never_reaches_the_terminal_raw(site: Site, told: Callable[[], str]) -> None:
    site.variables["hostwright_host_keys"] = r"printf '\033]0;x\007bad\n'; exit 1"
    assert site.trust() == REFUSED
    said = told()
    assert "\x1b" not in said
    assert "bad" in said
