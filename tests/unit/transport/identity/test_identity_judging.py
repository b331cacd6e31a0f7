"""Host key verification in cases that are not compared with ssh."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest
from paramiko.message import Message

from hostwright.transport import Options
from hostwright.transport.exchange import Deadline
from hostwright.transport.identity import certificates
from hostwright.transport.identity.hostkeys import HostKeyMismatch, KnownHost, KnownHosts, look_up, remember
from hostwright.transport.identity.negotiating import Transport, wanted
from hostwright.transport.identity.policy import HostKeyCheck
from hostwright.transport.routing.sshconfig import Endpoint, Trust
from tests.unit.support.hostkeys import host_key

KEY, OTHER = host_key(0), host_key(1)
_CERTIFIED = "ssh-ed25519-cert-v01@openssh.com"


def checked(tmp_path: Path, lines: str, *, peer: str, address: str = "gpu01.example.org") -> None:
    file = tmp_path / "known_hosts"
    file.write_text(lines)
    trust = Trust(address_too=True, algorithms=("ssh-ed25519",))
    endpoint = Endpoint(address, 22, "root", (), False, True, (file,), (), "", None, trust=trust)
    files = Options().shared.known_hosts
    check = HostKeyCheck("gpu01", endpoint, files, Deadline(5), peer=peer, accept_new=False, jump=False)
    check._check_address(KEY, None)


def test_the_address_may_not_have_another_key(tmp_path: Path) -> None:
    lines = f"gpu01.example.org {KEY.line}\n10.0.0.7 {OTHER.line}\n"
    with pytest.raises(
        HostKeyMismatch, match=r"known_hosts:2 has a different key for its IP address 10\.0\.0\.7 \(CheckHostIP\)"
    ):
        checked(tmp_path, lines, peer="10.0.0.7")
    checked(tmp_path, lines, peer="10.0.0.8")
    checked(tmp_path, f"{lines}10.0.0.7 {KEY.line}\n", peer="10.0.0.7")
    checked(tmp_path, f"127.0.0.7 {OTHER.line}\n", peer="127.0.0.7")  # as in OpenSSH
    checked(tmp_path, lines, peer="")


def test_of_two_keys_at_once_one_is_recorded(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    keys = [host_key(number % 3) for number in range(12)]
    others: list[KnownHost | None] = []

    def record(number: int) -> None:
        others.append(remember(file, "gpu01", keys[number].key_type, keys[number].blob))

    threads = [threading.Thread(target=record, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (line,) = file.read_text().splitlines()
    assert line in {f"gpu01 {key.line}" for key in keys}
    assert [other is None for other in others].count(True) == 4
    assert {other.where for other in others if other} == {f"{file}:1"}


def test_a_name_is_hidden_where_ssh_would_hide_it(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    for _ in range(2):
        assert remember(file, "gpu01", KEY.key_type, KEY.blob, hashed=True) is None
    (line,) = file.read_text().splitlines()
    assert line.startswith("|1|")
    (entry,) = look_up("gpu01", "", [file], Options().shared.known_hosts).entries
    assert entry.is_for(KEY.blob)


@pytest.mark.parametrize(
    ("agreed", "key", "signature"),
    [
        ("rsa-sha2-512", "ssh-rsa", "ssh-rsa"),
        ("rsa-sha2-512", "ssh-rsa", "rsa-sha2-256"),
        ("ssh-ed25519", "ssh-rsa", "ssh-ed25519"),
        ("ssh-ed25519", _CERTIFIED, "ssh-ed25519"),
        (_CERTIFIED, "ssh-ed25519", "ssh-ed25519"),
        (_CERTIFIED, _CERTIFIED, _CERTIFIED),
        ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp256"),
    ],
)
def test_a_server_shows_what_was_agreed_upon(agreed: str, key: str, signature: str) -> None:
    """paramiko would accept a weaker signature, or a key of another type."""

    def text(value: str) -> bytes:
        message = Message()
        message.add_string(value)
        return message.asbytes()

    transport = Transport.__new__(Transport)
    transport.host_key_type = agreed
    with pytest.raises(paramiko.SSHException) as caught:
        transport._verify_key(text(key), text(signature))
    assert str(caught.value).endswith(f"instead of {agreed}")


def test_known_kinds_are_asked_for_first(tmp_path: Path) -> None:
    algorithms = (_CERTIFIED, "ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256")
    trust = Trust(algorithms=algorithms)
    rsa = paramiko.RSAKey.generate(2048).get_base64()

    def order(trust: Trust, *lines: str) -> tuple[str, ...]:
        known = look_up("gpu01", "", [], Options().shared.known_hosts)
        entries = KnownHosts.parse(tmp_path, "\n".join(lines).encode()).lookup("gpu01")
        return wanted(trust, replace(known, entries=tuple(entries)))

    assert order(trust) == algorithms
    assert order(trust, f"gpu01 ssh-rsa {rsa}")[:2] == ("rsa-sha2-512", "rsa-sha2-256")
    assert order(trust, f"gpu01 ssh-rsa {rsa}", f"gpu01 {KEY.line}") == algorithms
    assert order(trust, f"gpu01 ssh-rsa {rsa}", f"@cert-authority * {OTHER.line}")[:2] == (_CERTIFIED, "rsa-sha2-512")
    assert order(replace(trust, own_order=True), f"gpu01 ssh-rsa {rsa}") == algorithms


@pytest.mark.parametrize("blob", [b"", b"\0", b"\0\0\0\x05abc", KEY.blob, b"\xff" * 40, KEY.blob[:20]])
def test_what_is_no_certificate_is_said(blob: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        certificates.read(blob)
    assert certificates.plain(blob) in (b"", KEY.blob)
