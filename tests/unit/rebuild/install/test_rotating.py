"""The host key of a seed gives way to one that never left the host: a real sshd, known_hosts, and ssh itself."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.common.durations import Clock
from hostwright.common.errors import HostError, Unreachable
from hostwright.common.quoting import sh_file
from hostwright.rebuild.install import rotating
from hostwright.transport import connect
from hostwright.transport.identity.keys import HostKey
from hostwright.transport.identity.keyscan import scan_key
from hostwright.transport.root.rootshell import RootShell
from tests.lab.sshd import Sshd, options, running
from tests.unit.support.hostjobs import until


@pytest.fixture
def server() -> Iterator[Sshd]:
    with running() as started:
        yield started


def rotate(server: Sshd, *, seeded: HostKey | None = None, **changes: str) -> HostKey:
    seeded = seeded or HostKey.parse(server.public_host_key)
    files = {"key": str(server.host_key), "pid": str(server.folder / "pid"), **changes}
    with RootShell(connect(server.target(), options())) as shell:
        return rotating.rotate(shell, server.target(), options(), seeded, Clock(), **files)


def known(server: Sshd) -> list[str]:
    return [line.split(" ", 1)[1] for line in server.known_hosts.read_text().splitlines()]


def ssh(server: Sshd) -> int:
    """Whether OpenSSH itself takes the host for the known one."""
    settings = ["-F", "none", "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={server.known_hosts}"]
    where = ["-o", "GlobalKnownHostsFile=none", "-i", str(server.key), "-p", str(server.port), "root@127.0.0.1", "true"]
    return subprocess.run(["ssh", *settings, *where], capture_output=True, check=False).returncode


def public(key: Path) -> str:
    """What an sshd that starts now shows."""
    command = ["ssh-keygen", "-y", "-f", str(key)]
    return " ".join(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[:2])


def restarted(server: Sshd) -> HostKey:
    """The key that is shown once the sshd has the one on its disk: it refuses connections while it starts anew."""
    on_disk = HostKey.parse(public(server.host_key))

    def shows_it() -> bool:
        with contextlib.suppress(Unreachable):
            return scan_key(server.target(), options()) == on_disk
        return False

    until(shows_it, "the sshd shows the key that is on its disk")
    return on_disk


def test_the_seeds_key_is_neither_on_the_host_nor_known_any_more(server: Sshd) -> None:
    seeded = server.public_host_key
    made = rotate(server)
    assert made.line != seeded
    assert known(server) == [made.line]
    assert scan_key(server.target(), options()) == made
    assert ssh(server) == 0
    assert server.host_key.stat().st_mode & 0o777 == 0o600
    assert server.host_key.with_suffix(".pub").stat().st_mode & 0o777 == 0o644
    assert not list(server.folder.glob("*.next*"))


def test_who_has_the_seed_cannot_impersonate_the_host(server: Sshd) -> None:
    stolen = server.host_key.read_bytes(), server.host_key.with_suffix(".pub").read_bytes()
    rotate(server)
    server.stop()
    server.host_key.write_bytes(stolen[0])
    server.host_key.with_suffix(".pub").write_bytes(stolen[1])
    server.start()
    assert ssh(server) == 255
    with pytest.raises(HostError, match="key"):
        connect(server.target(), options())


def test_a_host_with_another_key_is_left_alone(server: Sshd) -> None:
    before = server.known_hosts.read_text()
    other = server.folder / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    with pytest.raises(HostError, match=r"it cannot generate its own host key: .* is not the key of its seed"):
        rotate(server, key=str(other))
    assert server.known_hosts.read_text() == before


@pytest.mark.parametrize("after", ["newkey.sh", "replace", "half", "moved"])
def test_wherever_it_is_interrupted_the_host_is_known_and_it_can_be_done_again(
    server: Sshd, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    seeded = HostKey.parse(server.public_host_key)

    def interrupted(_module: str, file: str, **values: object) -> str:
        if file == "newkey.sh":
            return sh_file(rotating.__file__, file, **values)
        moves = {
            "half": 'mv -f "$key.next" "$key"',
            "moved": 'mv -f "$key.next" "$key"; mv -f "$key.next.pub" "$key.pub"',
        }
        return f"key={values['key']}; {moves.get(after, ':')}; echo cut >&2; exit 1"

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(rotating, "sh_file", interrupted)
        if after == "newkey.sh":
            patch.setattr(rotating, "replace", killed)
        with pytest.raises((HostError, KeyboardInterrupt)) as error:
            rotate(server)
    if after != "newkey.sh":
        assert f"both keys, {seeded} and ssh-ed25519 SHA256:" in str(error.value)
        assert len(known(server)) == 2
        assert seeded.line in known(server)
    assert ssh(server) == 0  # sshd as it runs
    server.stop()
    server.start()
    assert ssh(server) == 0  # and after a reboot
    made = rotate(server, seeded=seeded)
    assert known(server) == [made.line]
    assert made != seeded
    assert ssh(server) == 0
    assert rotate(server, seeded=seeded) == made  # which is the end of it


def test_a_host_that_goes_on_showing_the_seeds_key_keeps_both(server: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    seeded = HostKey.parse(server.public_host_key)
    monkeypatch.setattr(rotating, "SHOW_TIMEOUT_S", 0.2)
    monkeypatch.setattr(rotating, "scan_key", lambda *_: seeded)
    with pytest.raises(HostError, match=r"does not present its new host key .*; both keys, .* stay in known_hosts"):
        rotate(server)
    assert len(known(server)) == 2
    restarted(server)
    assert ssh(server) == 0
