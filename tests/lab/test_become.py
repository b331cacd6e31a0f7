"""Becoming root with real sudo, sshd and users: successes, failures and their causes, and no leak of passwords."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hostwright.apply.delivery.looking import Found, StoredFile, look
from hostwright.apply.delivery.pushing import push
from hostwright.common.errors import BecomeError, Unreachable
from hostwright.common.secret import Secret
from hostwright.stack.store.hostcache import host_path
from hostwright.transport import Output, Session, connect
from hostwright.transport.root import become
from hostwright.transport.root.become import check_become, wrap
from hostwright.transport.root.rootshell import RootShell
from tests.lab import sshd
from tests.lab.sshd import Sshd, options, running
from tests.unit.stack.test_artifacts import Artifact

PASSWORD = "p w'\"$(id)`;\\é-7f3a"
RULES = {
    "hwtest-free": "{user} ALL=(ALL:ALL) NOPASSWD: ALL",
    "hwtest-asked": "{user} ALL=(ALL:ALL) ALL",
    "hwtest-terminal": "Defaults:{user} use_pty\n{user} ALL=(ALL:ALL) ALL",
    "hwtest-strict": 'Defaults:{user} secure_path="/usr/bin:/bin"\n{user} ALL=(ALL:ALL) NOPASSWD: ALL',
    "hwtest-nobody": "",
    "hwtest-little": "{user} ALL=(ALL:ALL) NOPASSWD: /bin/true",
}


@pytest.fixture(scope="module")
def server() -> Iterator[Sshd]:
    """An sshd with users of every kind, removed at the end."""
    with ExitStack() as stack:
        one = stack.enter_context(running())
        for user, rule in RULES.items():
            stack.enter_context(sshd.user(user, PASSWORD))
            path = Path("/etc/sudoers.d") / user
            stack.callback(path.unlink)
            path.write_text(rule.format(user=user) + "\n")
            path.chmod(0o440)
            subprocess.run(["visudo", "-cqf", path], check=True)
        yield one


def run(server: Sshd, user: str, password: str | None, root: str = "id -un", own: str = "id -un") -> Output:
    secret = None if password is None else Secret(password)
    with connect(server.target(user=user), options()) as session:
        output = RootShell(session, secret).attempt(root, as_user=own, timeout_s=30)
    assert session.execs == 1
    return output


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("root", None),
        ("root", "not needed"),
        ("hwtest-free", None),
        ("hwtest-free", "not needed"),
        ("hwtest-asked", PASSWORD),
        ("hwtest-terminal", PASSWORD),
    ],
)
def test_both_parts_run_in_one_exec(server: Sshd, user: str, password: str | None) -> None:
    output = run(server, user, password, root="id -un; cat; pwd >/dev/null; exit 4")
    assert (output.status, output.stdout, output.stderr) == (4, f"{user}\nroot\n".encode(), b"")


@pytest.mark.parametrize("user", ["root", "hwtest-free", "hwtest-strict"])
def test_root_finds_its_programs_whatever_sudo_makes_of_the_path(server: Sshd, user: str) -> None:
    look = "command -v visudo; echo $LC_ALL"
    assert run(server, user, None, root=look).stdout.decode().split()[1:] == ["/usr/sbin/visudo", "C"]
    with connect(server.target(user=user), options()) as session:
        streamed = RootShell(session).stream(look, stdin=io.BytesIO(), timeout_s=30)
    assert streamed.stdout.decode().split() == ["/usr/sbin/visudo", "C"]


@pytest.mark.parametrize(
    ("user", "password", "sentence"),
    [
        ("hwtest-asked", None, "run again with --ask-become-pass"),
        ("hwtest-asked", "wrong", "sudo rejected the password"),
        ("hwtest-asked", "", "sudo rejected the password"),
        ("hwtest-terminal", "wrong", "sudo rejected the password"),
        ("hwtest-nobody", PASSWORD, "does not allow the login user to become"),
        ("hwtest-nobody", None, "--ask-become-pass"),
        ("hwtest-little", None, "--ask-become-pass|does not allow the login user to become root"),
        ("hwtest-little", PASSWORD, "does not allow the login user to become"),
    ],
)
def test_who_may_not_is_told_why_and_nothing_ran(server: Sshd, user: str, password: str | None, sentence: str) -> None:
    trace = server.folder / "trace"
    with pytest.raises(BecomeError, match=sentence) as caught:
        run(server, user, password, root=f"touch {trace}")
    assert not trace.exists()
    assert not password or password not in str(caught.value)


def test_a_wrong_password_is_tried_once(server: Sshd) -> None:
    """More attempts lock accounts (pam_faillock), and sudo would read the program's lines as attempts."""
    output = Output(0, b"", b"", False, 0.0)
    with connect(server.target(user="hwtest-asked"), options()) as session:
        output = session.run("/bin/sh", stdin=wrap("", "true\n" * 50, password=Secret("wrong")), timeout_s=30)
    assert b"1 incorrect password attempt" in output.stderr


def test_a_host_without_sudo_is_named(server: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine has sudo, so the program searches for a missing tool instead."""
    monkeypatch.setattr(become, "SUDO_PLACES", ("/usr/bin/no-such-sudo",))
    program = wrap("", "true", password=None).replace(b"command -v sudo", b"command -v no-such-sudo")
    with connect(server.target(user="hwtest-free"), options()) as session:
        output = session.run("/bin/sh", stdin=program, timeout_s=30)
    with pytest.raises(BecomeError, match="sudo is not installed"):
        check_become("gpu01", output)


@dataclass
class Watcher:
    """Reads the arguments and environments of all processes repeatedly."""

    secret: bytes
    found: list[bytes] = field(default_factory=list)
    seen: set[bytes] = field(default_factory=set)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Watcher:
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.is_set():
            for name in (one.name for one in Path("/proc").iterdir() if one.name.isdigit()):
                for kind in ("cmdline", "environ"):
                    try:
                        content = Path("/proc", name, kind).read_bytes()
                    except OSError:
                        continue
                    if kind == "cmdline":
                        self.seen.add(content)
                    if self.secret in content:
                        self.found.append(content)


@pytest.mark.parametrize("user", ["hwtest-free", "hwtest-asked", "hwtest-terminal"])
def test_the_password_is_never_in_an_argument_an_environment_or_the_output(server: Sshd, user: str) -> None:
    slow = "for i in 1 2 3 4 5 6 7 8; do /bin/sleep 0.123; env; set; done"
    with Watcher(PASSWORD[-5:].encode()) as watcher:
        output = run(server, user, PASSWORD, root=slow, own=slow)
    assert any(b"/bin/sleep\x000.123" in one for one in watcher.seen)
    assert any(one.startswith(b"/usr/bin/sudo\0-k\0-S") for one in watcher.seen)
    assert watcher.found == []
    assert PASSWORD[-5:].encode() not in output.stdout + output.stderr
    assert PASSWORD[-5:] not in (server.folder / "log").read_text()


def test_no_here_document_holds_a_password() -> None:
    """bash writes here-documents to files, so Hostwright uses none."""
    assert b"<<" not in wrap("true", "true", password=Secret(PASSWORD))


# Delivery as another user

CONTENT = os.urandom(3_000_000)
ARTIFACT = Artifact("driver", "a 'file' $(x)", (), hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def cache(server: Sshd) -> Iterator[Path]:
    path = server.folder / "cache"
    yield path
    subprocess.run(["rm", "-rf", path], check=True)


def deliver(shell: RootShell, item: StoredFile, cache: Path, progress: Callable[[int], None] = lambda _: None) -> None:
    missing = list[Found]()
    look(shell, [item], begun=lambda *_: None, found=missing.append, cache=str(cache))
    for found in missing:
        if not found.there:
            push(shell, found, progress=progress, cache=str(cache))


def bring(session: Session, source: Path, cache: Path, password: str | None) -> Path:
    shell = RootShell(session, None if password is None else Secret(password))
    deliver(shell, StoredFile.of(ARTIFACT, source), cache)
    return Path(host_path(ARTIFACT, str(cache)))


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("root", None),
        ("hwtest-free", None),
        ("hwtest-free", "not needed"),
        ("hwtest-asked", PASSWORD),
        ("hwtest-terminal", PASSWORD),
    ],
)
def test_a_file_arrives_as_roots_and_is_never_sent_twice(
    server: Sshd, source: Path, cache: Path, user: str, password: str | None
) -> None:
    with connect(server.target(user=user), options()) as session:
        final = bring(session, source, cache, password)
        assert session.execs == 2
        assert final.read_bytes() == CONTENT
        assert (final.stat().st_uid, final.stat().st_mode & 0o777) == (0, 0o644)
        bring(session, source, cache, password)
        assert session.execs == 3


def test_a_connection_that_breaks_is_gone_on_with(source: Path, cache: Path, server: Sshd) -> None:
    told: list[int] = []
    big = source.with_name("big")
    with big.open("wb") as file:
        for _ in range(60):
            file.write(CONTENT)
    with big.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    artifact = Artifact("big", "big", (), digest, None)
    item = StoredFile.of(artifact, big)
    with running() as other:

        def progress(done: int) -> None:
            told.append(done)
            if done > item.size // 2 and other.process is not None and other.process.poll() is None:
                other.stop()

        with connect(other.target(), options()) as session, pytest.raises(Unreachable):
            deliver(RootShell(session), item, cache, progress)
    told.clear()
    with connect(server.target(), options()) as session:
        deliver(RootShell(session), item, cache, told.append)
    assert told[0] > 30_000_000
    with Path(host_path(artifact, str(cache))).open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == digest


def test_who_may_not_become_root_delivers_nothing(server: Sshd, source: Path, cache: Path) -> None:
    with connect(server.target(user="hwtest-nobody"), options()) as session, pytest.raises(BecomeError):
        bring(session, source, cache, PASSWORD)
    assert not cache.exists()
