"""Host keys that change while their controller is killed, their host is cut off, or somebody else does the same."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.common.durations import Clock
from hostwright.common.quoting import sh_file
from hostwright.rebuild.install import rotating
from hostwright.transport import connect
from hostwright.transport.identity.keys import HostKey
from hostwright.transport.identity.keyscan import scan_key
from hostwright.transport.root.rootshell import RootShell
from tests.lab.sshd import Sshd, Target, make_key, options, running
from tests.unit.rebuild.install.test_rotating import known, public, restarted, rotate, ssh

#: Rotates the key of an sshd, and kills itself after the step that its last argument counts.
CONTROLLER = """
import os, signal, sys
from hostwright.common.durations import Clock
from hostwright.rebuild.install import rotating
from hostwright.transport import connect
from hostwright.transport.identity import trusting
from hostwright.transport.identity.keys import HostKey
from hostwright.transport.root.rootshell import RootShell
from tests.lab.sshd import Target, options

port, login, known_hosts, key, pid, seeded, last = sys.argv[1:]
done = 0

def cut(function):
    def wrapped(*arguments, **named):
        global done
        result = function(*arguments, **named)
        done += 1
        if done == int(last):
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return wrapped

rotating.replace, rotating.scan_key = cut(rotating.replace), cut(rotating.scan_key)
trusting._put, RootShell.run = cut(trusting._put), cut(RootShell.run)
target = Target(port=int(port), key_file=login, known_hosts=known_hosts)
with RootShell(connect(target, options())) as shell:
    rotating.rotate(shell, target, options(), HostKey.parse(seeded), Clock(), key=key, pid=pid)
"""
STEPS = 7  #: a key is made; it is written down, beside the seed's; sshd has it; it is seen; it is written down alone


@pytest.fixture
def server() -> Iterator[Sshd]:
    with running() as started:
        yield started


def controller(server: Sshd, seeded: HostKey, last: int) -> int:
    """Rotate in a process of its own, killed after so many steps; its exit status."""
    files = [server.key, server.known_hosts, server.host_key, server.folder / "pid"]
    arguments = [str(server.port), *map(str, files), seeded.line, str(last)]
    command = [sys.executable, "-c", CONTROLLER, *arguments]
    return subprocess.run(command, capture_output=True, check=False, timeout=120).returncode


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_a_controller_that_is_killed_knows_one_key_that_opens_and_ends_with_it_alone(server: Sshd, step: int) -> None:
    seeded = HostKey.parse(server.public_host_key)
    assert controller(server, seeded, step) == -signal.SIGKILL
    shown = restarted(server)
    assert known(server).count(shown.line) == 1
    assert ssh(server) == 0
    made = rotate(server, seeded=seeded)
    assert known(server) == [made.line]
    assert made != seeded
    assert scan_key(server.target(), options()) == made
    assert ssh(server) == 0


def test_there_are_no_further_steps(server: Sshd) -> None:
    assert controller(server, HostKey.parse(server.public_host_key), STEPS + 10) == 0
    assert len(known(server)) == 1


def test_controllers_at_once_end_with_the_same_key(server: Sshd) -> None:
    seeded = HostKey.parse(server.public_host_key)
    files = {"key": str(server.host_key), "pid": str(server.folder / "pid")}
    results: list[HostKey] = []
    begin = threading.Barrier(4)

    def run(target: Target) -> None:
        with RootShell(connect(target, options())) as shell:
            begin.wait(60)
            results.append(rotating.rotate(shell, target, options(), seeded, Clock(), **files))

    others = [server.folder / f"known_hosts.{number}" for number in range(3)]  # of other controllers
    for other in others:
        other.write_text(server.known_hosts.read_text())
    targets = [server.target(), *(server.target(known_hosts=str(other)) for other in others)]
    threads = [threading.Thread(target=run, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(results) == 4
    assert set(results) == {scan_key(server.target(), options())}
    assert {path.read_text() for path in (server.known_hosts, *others)} == {
        f"[127.0.0.1]:{server.port} {results[0].line}\n"
    }
    assert not list(server.folder.glob("host_key.[nm]*"))


def script(file: str, key: Path, **values: str) -> str:
    return sh_file(rotating.__file__, file, key=str(key), **values)


def bash(text: str, cut: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a script; killed before the command that ``cut`` counts, if that is not 0."""
    trap = f"commands=0; trap '[ $((commands += 1)) != {cut} ] || kill -9 $$' DEBUG\n" if cut else ""
    return subprocess.run(["bash", "-c", trap + text], capture_output=True, text=True, check=False, timeout=60)


def test_a_host_that_is_cut_off_anywhere_has_a_key_that_is_known(tmp_path: Path) -> None:
    """Every command of both scripts, and what the next run makes of what is left."""
    cuts = 0
    for part in ("newkey.sh", "swapkey.sh"):
        for cut in range(1, 60):
            folder = tmp_path / f"{part}{cut}"
            folder.mkdir()
            key = make_key(folder / "key", "-t", "ed25519", "-C", "")
            seeded = public(key)
            making, swapping = script("newkey.sh", key, seeded=seeded), script("swapkey.sh", key, pid="/nonexistent")
            recorded = {seeded}
            if part == "swapkey.sh":
                recorded.add(HostKey.parse(bash(making).stdout).line)
            done = bash(making if part == "newkey.sh" else swapping, cut)
            if done.returncode == 0:
                break
            cuts += 1
            assert done.returncode == -signal.SIGKILL
            assert public(key) in recorded
            again = bash(making)
            assert again.returncode == 0, (part, cut, again.stderr)
            made = HostKey.parse(again.stdout).line
            assert part == "newkey.sh" or made in recorded
            assert public(key) in {seeded, made}
            assert bash(swapping).returncode == 0
            assert public(key) == made != seeded
            assert HostKey.parse((folder / "key.pub").read_text()).line == made
            assert sorted(path.name for path in folder.iterdir()) == ["key", "key.pub"]
            assert (key.stat().st_mode & 0o777, (folder / "key.pub").stat().st_mode & 0o777) == (0o600, 0o644)
    assert cuts > 15
