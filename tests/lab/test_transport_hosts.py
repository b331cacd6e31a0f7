"""Connections to a real sshd: host keys, logins, jump hosts, and failures of each."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.common.errors import Unreachable
from hostwright.common.secret import Secret
from hostwright.transport import Session, connect
from hostwright.transport.identity.hostkeys import HostKeyMismatch
from tests.lab import sshd as sshds
from tests.lab.sshd import PROMPT_S, Sshd, free_port, frozen, make_key, options, running, sshd
from tests.unit.support.hostjobs import until

__all__ = ["sshd"]

USER = "hwtest-ssh"
PASSWORD = 'it\'s $(a) "secret" ü'


@pytest.fixture(scope="module")
def server() -> Iterator[Sshd]:
    with running() as one:
        yield one


@pytest.fixture
def user() -> Iterator[str]:
    with sshds.user(USER, PASSWORD) as name:
        yield name


# Host keys


def test_an_unknown_host_is_refused_before_a_password_is_sent(sshd: Sshd, user: str) -> None:
    sshd.known_hosts.write_text("")
    target = sshd.target(user=user, key_file=None, password=Secret(PASSWORD))
    with pytest.raises(Unreachable) as caught:
        connect(target, options())
    text = str(caught.value)
    fingerprint = subprocess.run(["ssh-keygen", "-lf", sshd.host_key], capture_output=True, text=True, check=True)
    assert fingerprint.stdout.split()[1] in text
    assert f"127.0.0.1:{sshd.port}" in text
    assert "accept-new" in text
    assert not isinstance(caught.value, HostKeyMismatch)
    assert USER not in (sshd.folder / "log").read_text()


def test_a_changed_key_names_both_fingerprints_and_the_line(sshd: Sshd, tmp_path: Path, user: str) -> None:
    other = make_key(tmp_path / "other")
    encoded = " ".join(other.with_suffix(".pub").read_text().split()[:2])
    sshd.known_hosts.write_text(f"# mine\n[127.0.0.1]:{sshd.port} {encoded}\n")
    target = sshd.target(user=user, key_file=None, password=Secret(PASSWORD))
    for policy in ("strict", "accept-new"):
        with pytest.raises(HostKeyMismatch) as caught:
            connect(target, options(host_keys=policy))
        for key in (other, sshd.host_key):
            printed = subprocess.run(["ssh-keygen", "-lf", key], capture_output=True, text=True, check=True)
            assert printed.stdout.split()[1] in str(caught.value)
        assert f"{sshd.known_hosts}:2" in str(caught.value)
        assert f"invoke trust --hosts {target.name}" in str(caught.value)
    assert USER not in (sshd.folder / "log").read_text()


def test_another_kind_of_key_than_the_known_one_is_a_changed_key(sshd: Sshd, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other", "-t", "ecdsa")
    encoded = " ".join(other.with_suffix(".pub").read_text().split()[:2])
    sshd.known_hosts.write_text(f"[127.0.0.1]:{sshd.port} {encoded}\n")
    with pytest.raises(HostKeyMismatch, match="ecdsa-sha2-nistp256 SHA256:"):
        connect(sshd.target(), options())


def test_accept_new_writes_the_key_down_once(sshd: Sshd) -> None:
    sshd.known_hosts.unlink()
    for _ in range(2):
        with connect(sshd.target(), options(host_keys="accept-new")) as session:
            session.run("true", timeout_s=20)
    assert sshd.known_hosts.read_text() == f"[127.0.0.1]:{sshd.port} {sshd.public_host_key}\n"
    with connect(sshd.target(), options()) as session:
        assert session.run("true", timeout_s=20).status == 0


def test_accept_new_can_be_asked_for_one_host_alone(sshd: Sshd) -> None:
    sshd.known_hosts.write_text("")
    with pytest.raises(Unreachable, match="is not known"):
        connect(sshd.target(host_keys="strict"), options(host_keys="accept-new"))
    with connect(sshd.target(host_keys="accept-new"), options()) as session:
        assert session.run("true", timeout_s=20).status == 0


def test_a_revoked_key_is_refused(sshd: Sshd) -> None:
    with sshd.known_hosts.open("a") as file:
        file.write(f"@revoked * {sshd.public_host_key}\n")
    with pytest.raises(HostKeyMismatch, match=r"known_hosts:2 revokes"):
        connect(sshd.target(), options(host_keys="accept-new"))


def test_hashed_entries_and_the_known_kind_of_key_first(tmp_path: Path) -> None:
    """The server would offer its ed25519 key first, but only its RSA key is known."""
    rsa = make_key(tmp_path / "rsa", "-t", "rsa", "-b", "3072")
    with running(f"HostKey {rsa}") as server:
        encoded = " ".join(rsa.with_suffix(".pub").read_text().split()[:2])
        server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {encoded}\n")
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", server.known_hosts], check=True, capture_output=True)
        assert "127.0.0.1" not in server.known_hosts.read_text()
        with connect(server.target(), options()) as session:
            assert session.run("true", timeout_s=20).status == 0


# Logging in


def test_a_password_is_used_only_where_there_is_one(sshd: Sshd, user: str) -> None:
    with pytest.raises(Unreachable, match="without a usable key or password"):
        connect(sshd.target(user=user, key_file=None), options(ssh_config=empty_config(sshd)))
    target = sshd.target(user=user, key_file=None, password=Secret(PASSWORD))
    with connect(target, options(ssh_config=empty_config(sshd))) as session:
        assert session.run("id -un", timeout_s=20).stdout.decode() == f"{user}\n"
    with pytest.raises(Unreachable) as caught:
        connect(sshd.target(user=user, key_file=None, password=Secret("wrong")), options(ssh_config=empty_config(sshd)))
    assert f"login at {user}@127.0.0.1:{sshd.port} was refused; tried: the password" in str(caught.value)
    assert "wrong" not in str(caught.value)


def empty_config(sshd: Sshd) -> Path:
    """A configuration without the keys of the user who runs the tests."""
    path = sshd.folder / "no_keys"
    path.write_text("IdentityFile none\n")
    return path


def test_a_key_with_a_passphrase_names_ssh_add(sshd: Sshd) -> None:
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", "phrase", "-f", sshd.key], check=True)
    with pytest.raises(Unreachable, match=rf"has a passphrase; run: ssh-add {sshd.key}"):
        connect(sshd.target(), options())


def test_the_agent_is_asked(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    address = sshd.folder / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(address)], stdout=subprocess.DEVNULL)
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(address))
        asked = ["ssh-add", "-l"]  # 2: there is no agent
        until(lambda: subprocess.run(asked, capture_output=True, check=False).returncode != 2, "the agent answers")
        for number in range(8):
            subprocess.run(["ssh-add", "-q", make_key(sshd.folder / f"many{number}")], check=True)
        subprocess.run(["ssh-add", "-q", sshd.key], check=True)
        subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", "phrase", "-f", sshd.key], check=True)
        with pytest.raises(Unreachable, match="closed the connection"):
            connect(sshd.target(), options(use_agent=True))
        config = sshd.folder / "only"
        config.write_text("IdentitiesOnly yes\n")
        with connect(sshd.target(), options(use_agent=True, ssh_config=config)) as session:
            assert session.run("true", timeout_s=20).status == 0
    finally:
        agent.terminate()
        agent.wait()


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, r"odd key \(ansible_ssh_private_key_file\) does not exist"), ("nonsense", "is not a usable private key")],
)
def test_a_key_file_that_is_none_is_named(sshd: Sshd, content: str | None, said: str) -> None:
    path = sshd.folder / "odd key"
    if content:
        path.write_text(content)
    with pytest.raises(Unreachable, match=said):
        connect(sshd.target(key_file=str(path)), options(ssh_config=empty_config(sshd)))


def test_ssh_config_gives_what_the_inventory_leaves_open(sshd: Sshd) -> None:
    config = sshd.folder / "config"
    config.write_text(
        f"Host rack*\n HostName 127.0.0.1\n Port {sshd.port}\n User root\n IdentityFile {sshd.key}\n"
        f" UserKnownHostsFile {sshd.known_hosts}\n"
    )
    target = sshd.target(name="rack7", address=None, port=None, user=None, key_file=None, known_hosts=None)
    with connect(target, options(ssh_config=config)) as session:
        assert session.endpoint == f"root@127.0.0.1:{sshd.port}"
        assert session.run("true", timeout_s=20).status == 0


# Routes


def test_a_hundred_hosts_behind_a_jump_host_cost_it_one_login(server: Sshd) -> None:
    with running() as bastion:
        config = bastion.folder / "config"
        config.write_text(
            f"Host bastion\n HostName 127.0.0.1\n Port {bastion.port}\n User root\n IdentityFile {bastion.key}\n"
            f" UserKnownHostsFile {bastion.known_hosts}\n"
        )
        chosen = options(ssh_config=config)
        target = server.target(proxy_jump="bastion")
        sessions: list[Session] = []
        threads = [threading.Thread(target=lambda: sessions.append(connect(target, chosen))) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(sessions) == 10
        for session in sessions:
            assert session.run("echo on", timeout_s=20).stdout == b"on\n"
        assert (bastion.folder / "log").read_text().count("Accepted publickey") == 1
        assert bastion.pids()
        for session in sessions:
            session.close()
        until(lambda: not bastion.pids(), "nothing of it is left")


def test_jump_host_key_is_checked_and_gets_no_password(server: Sshd, user: str) -> None:
    with running() as bastion:
        config = bastion.folder / "config"
        config.write_text(
            f"Host *\n ProxyJump bastion\n"
            f"Host bastion\n HostName 127.0.0.1\n Port {bastion.port}\n User root\n IdentityFile {bastion.key}\n"
            f" UserKnownHostsFile {bastion.known_hosts}\n"
        )
        target = server.target(user=user, key_file=None, password=Secret(PASSWORD))
        with connect(target, options(ssh_config=config)) as session:
            assert session.run("id -un", timeout_s=20).stdout.decode() == f"{user}\n"
        assert "password" not in (bastion.folder / "log").read_text()
        bastion.known_hosts.write_text("")
        with pytest.raises(Unreachable, match=r"^gpu01: its jump host: the host key of 127.0.0.1:\d+ is not known"):
            connect(target, options(ssh_config=config))
        bastion.known_hosts.write_text(f"[127.0.0.1]:{bastion.port} {server.public_host_key}\n")
        with pytest.raises(HostKeyMismatch, match="its jump host"):
            connect(target, options(ssh_config=config))


def test_a_jump_host_that_cannot_reach_the_host(server: Sshd) -> None:
    jump = f"root@127.0.0.1:{server.port}"
    config = server.folder / "config"
    config.write_text(f"IdentityFile {server.key}\n")
    with pytest.raises(Unreachable, match="the jump host cannot reach the server"):
        connect(server.target(port=free_port(), proxy_jump=jump), options(ssh_config=config))


def test_a_proxy_command(server: Sshd) -> None:
    assert shutil.which("ssh")
    config = server.folder / "proxy"
    config.write_text(
        f"ProxyCommand ssh -F none -i {server.key} -o UserKnownHostsFile={server.known_hosts} "
        f"-p {server.port} -W %h:%p root@127.0.0.1\n"
    )
    with connect(server.target(), options(ssh_config=config)) as session:
        assert session.run("cat", stdin=b"x" * 3_000_000, timeout_s=30).stdout == b"x" * 3_000_000
    config.write_text("ProxyCommand exit 1\n")
    begun = time.monotonic()
    with pytest.raises(Unreachable, match="ended the connection before the login"):
        connect(server.target(), options(ssh_config=config))
    assert time.monotonic() - begun < PROMPT_S


def test_jump_hosts_in_a_circle(server: Sshd) -> None:
    config = server.folder / "circle"
    config.write_text("Host a\n ProxyJump b\nHost b\n ProxyJump a\n")
    with pytest.raises(Unreachable, match="form a loop"):
        connect(server.target(proxy_jump="a"), options(ssh_config=config))


# Failures


def test_nobody_listens(server: Sshd) -> None:
    with pytest.raises(Unreachable, match=r"^gpu01: 127.0.0.1:\d+ refuses the connection \(login as root\)"):
        connect(server.target(port=free_port()), options())


def test_a_name_that_does_not_exist(server: Sshd) -> None:
    with pytest.raises(Unreachable, match=r"the name 'nowhere.invalid' cannot be resolved"):
        connect(server.target(address="nowhere.invalid"), options())


def test_an_address_that_no_option_could_be(server: Sshd) -> None:
    with pytest.raises(Unreachable, match="is not a valid SSH host or user name"):
        connect(server.target(address="-oProxyCommand=true"), options())


@pytest.mark.parametrize("accepts", [True, False])
def test_a_server_that_says_nothing(server: Sshd, accepts: bool) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1 if accepts else 0)
        begun = time.monotonic()
        with pytest.raises(Unreachable, match=r"no answer from 127.0.0.1:\d+ within 1 s"):
            connect(server.target(port=listener.getsockname()[1], connect_timeout=1.0), options())
        assert time.monotonic() - begun < PROMPT_S


def test_a_server_that_hangs_before_the_login(sshd: Sshd) -> None:
    assert sshd.process is not None
    with frozen([sshd.process.pid]):
        begun = time.monotonic()
        with pytest.raises(Unreachable, match="within 1 s"):
            connect(sshd.target(connect_timeout=1.0), options())
        assert time.monotonic() - begun < PROMPT_S


def test_a_server_that_is_none(server: Sshd) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)

        def answer() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(Unreachable, match="it is not an SSH server"):
            connect(server.target(port=listener.getsockname()[1]), options())
        thread.join()


def test_a_failure_prints_nothing_of_its_own(sshd: Sshd, capfd: pytest.CaptureFixture[str]) -> None:
    sshd.known_hosts.write_text("")
    with pytest.raises(Unreachable):
        connect(sshd.target(), options())
    with pytest.raises(Unreachable):
        connect(sshd.target(port=free_port()), options())
    assert capfd.readouterr() == ("", "")
