"""Delivery through the real /bin/sh of this machine: any file name, any interruption, any damage."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.apply.delivery import pushing
from hostwright.apply.delivery.fetching import fetch_script
from hostwright.apply.delivery.looking import Found, StoredFile, look, missing_script
from hostwright.apply.delivery.pushing import push
from hostwright.common.errors import ArtifactError, HostError, ProtocolError
from hostwright.stack.store.hostcache import CACHE, host_path
from hostwright.transport import Output
from hostwright.transport.root.rootshell import RootShell
from tests.unit.support.shell import program, run
from tests.unit.transport.test_become import SUDO

CONTENT = os.urandom(300_000)


@dataclass(frozen=True)
class Artifact:
    file: str = "driver.run"
    sha256: str | None = hashlib.sha256(CONTENT).hexdigest()
    name: str = "driver"
    urls: tuple[str, ...] = ()
    size: int | None = None
    stand_in: bool = False


@dataclass(frozen=True)
class _Named:
    name: str = "gpu01"


@dataclass
class Here:
    """This machine in place of a session: commands run in its shell. ``damage`` spoils what is sent."""

    damage: Any = None
    execs: int = 0
    host: _Named = _Named()
    sent: list[int] = field(default_factory=list)

    def run(self, command: str, *, stdin: Any, **_: Any) -> Output:
        self.execs += 1
        if not isinstance(stdin, bytes):
            pieces = []
            while piece := stdin.read(32_000):
                pieces.append(piece)
            stdin = b"".join(pieces)
            self.sent.append(len(stdin))
            stdin = self.damage(self, stdin) if self.damage else stdin
        with tempfile.TemporaryDirectory() as folder:
            sudo = Path(folder) / "sudo"
            sudo.write_text(SUDO)
            sudo.chmod(0o755)
            environment = {"PATH": f"{folder}:{os.environ['PATH']}"}
            done = subprocess.run(
                ["/bin/sh", "-c", command], input=stdin, capture_output=True, env=environment, check=False, timeout=60
            )
        on_stdout = _.get("on_stdout")
        if on_stdout:
            on_stdout(done.stdout)
        return Output(done.returncode, b"" if on_stdout else done.stdout, done.stderr, False, 0.0)


@contextmanager
def places(name: str = "driver.run", content: bytes = CONTENT) -> Iterator[tuple[Path, str]]:
    """A file to send, and a cache for it."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "here").mkdir()
        path = Path(folder) / "here" / name
        path.write_bytes(content)
        yield path, f"{folder}/host cache"


def deliver(here: Any, files: list[tuple[Artifact, Path]], cache: str, told: list[int]) -> None:
    """Ask what is there, and send what is missing."""
    shell, missing = RootShell(here), list[Found]()
    items = [StoredFile.of(artifact, path) for artifact, path in files]
    look(shell, items, begun=lambda *_: None, found=missing.append, cache=cache)
    for found in missing:
        if not found.there:
            push(shell, found, progress=told.append, cache=cache)


def send(here: Here, path: Path, cache: str, artifact: Artifact, told: list[int] | None = None) -> Path:
    deliver(here, [(artifact, path)], cache, [] if told is None else told)
    return Path(host_path(artifact, cache))


def part(cache: str, artifact: Artifact, content: bytes) -> Path:
    path = Path(host_path(artifact, cache) + ".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_file_arrives_once_with_its_modes() -> None:
    told: list[int] = []
    here, artifact = Here(), Artifact()
    with places() as (path, cache):
        final = send(here, path, cache, artifact, told)
        assert final.read_bytes() == CONTENT
        assert stat.S_IMODE(final.stat().st_mode) == 0o644
        assert stat.S_IMODE(final.parent.stat().st_mode) == 0o755
        assert [one.name for one in final.parent.iterdir()] == ["driver.run"]
        assert here.execs == 2
        assert told[-1] == len(CONTENT)
        send(here, path, cache, artifact)
        assert here.execs == 3
        assert len(here.sent) == 1


def test_several_files_are_looked_for_in_one_exec() -> None:
    here = Here()
    other = b"other"
    second = Artifact("second.deb", hashlib.sha256(other).hexdigest(), "second")
    with places() as (path, cache):
        (path.parent / "second.deb").write_bytes(other)
        both = [(Artifact(), path), (second, path.parent / "second.deb")]
        deliver(here, both, cache, [])
        assert here.execs == 3
        deliver(here, both, cache, [])
        assert here.execs == 4
        assert Path(host_path(second, cache)).read_bytes() == other


_NAMES = st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=40).filter(
    lambda name: name not in (".", "..")
)


@settings(max_examples=25, deadline=None)
@given(_NAMES, st.binary(max_size=300), st.integers(0, 300))
def test_any_name_and_any_cut(name: str, content: bytes, cut: int) -> None:
    artifact = Artifact(name, hashlib.sha256(content).hexdigest())
    with places(name, content) as (path, cache):
        here = Here()
        part(cache, artifact, content[:cut])
        assert send(here, path, cache, artifact).read_bytes() == content
        assert here.execs == 2


@pytest.mark.parametrize(
    "name", ["a b", "a'b", 'a"b', "a\nb", "$(touch x)", "-n", "`id`", "ü.run", "a;b", "*", "%s%d", "a\\"]
)
def test_odd_names(name: str) -> None:
    artifact = Artifact(name)
    with places(name) as (path, cache):
        assert send(Here(), path, cache, artifact).read_bytes() == CONTENT


def test_what_was_begun_goes_on() -> None:
    artifact = Artifact()
    with places() as (path, cache):
        begun = part(cache, artifact, CONTENT[:200_000])
        here = Here()
        assert send(here, path, cache, artifact).read_bytes() == CONTENT
        assert 100_000 <= here.sent[0] < 101_000
        assert not begun.exists()


def test_a_part_that_is_complete_only_needs_its_name() -> None:
    artifact = Artifact()
    with places() as (path, cache):
        part(cache, artifact, CONTENT)
        here = Here()
        assert send(here, path, cache, artifact).read_bytes() == CONTENT
        assert here.sent[0] < 1000


def test_a_part_that_is_too_long_is_begun_anew() -> None:
    artifact = Artifact()
    with places() as (path, cache):
        part(cache, artifact, CONTENT + b"more")
        assert send(Here(), path, cache, artifact).read_bytes() == CONTENT


def test_a_damaged_part_is_found_out_and_sent_again() -> None:
    artifact = Artifact()
    with places() as (path, cache):
        part(cache, artifact, b"x" * 200_000)
        here = Here()
        assert send(here, path, cache, artifact).read_bytes() == CONTENT
        assert here.execs == 3
        assert here.sent[1] > len(CONTENT)


def spoil(_: Here, data: bytes) -> bytes:
    return data[:-5] + b"spoil"


def test_damage_on_the_way_is_mended_once() -> None:
    artifact = Artifact()
    with places() as (path, cache):
        here = Here(lambda me, data: spoil(me, data) if len(me.sent) == 1 else data)
        assert send(here, path, cache, artifact).read_bytes() == CONTENT
        assert here.execs == 3


def test_damage_twice_is_an_error_and_leaves_nothing() -> None:
    artifact = Artifact()
    with places() as (path, cache):
        here = Here(spoil)
        with pytest.raises(HostError, match=rf"arrived damaged twice: .* expected {artifact.sha256}"):
            send(here, path, cache, artifact)
        assert here.execs == 3
        assert list(Path(host_path(artifact, cache)).parent.iterdir()) == []


def test_a_file_that_is_damaged_here_is_not_the_hosts_fault() -> None:
    with (
        places(content=b"x" * len(CONTENT)) as (path, cache),
        pytest.raises(ArtifactError, match="damaged on this machine"),
    ):
        send(Here(), path, cache, Artifact())


def test_a_transfer_that_is_cut_leaves_a_part_to_go_on_with() -> None:
    artifact = Artifact()
    with places() as (path, cache):
        with pytest.raises(ArtifactError, match="became shorter"):
            send(Here(lambda _, data: data[:-1000]), path, cache, artifact)
        final = Path(host_path(artifact, cache))
        assert not final.exists()
        here = Here()
        send(here, path, cache, artifact)
        assert final.read_bytes() == CONTENT
        assert here.sent[0] < 2000


def test_the_leftover_of_a_broken_connection_does_no_harm() -> None:
    """Two senders at once: each writes the right bytes at their places."""
    artifact = Artifact()
    with places() as (path, cache):
        part(cache, artifact, CONTENT[:1000])
        first = pushing._RECEIVE
        leftover = subprocess.Popen(
            ["/bin/sh", "-c", first, "x", cache, str(artifact.sha256), artifact.file, str(len(CONTENT)), "1000"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert leftover.stdin
        leftover.stdin.write(CONTENT[1000:200_000])
        leftover.stdin.flush()
        assert send(Here(), path, cache, artifact).read_bytes() == CONTENT
        leftover.communicate()
        assert Path(host_path(artifact, cache)).read_bytes() == CONTENT


def test_a_place_that_cannot_be_used_is_named() -> None:
    with places() as (path, cache):
        Path(cache).write_text("a file")
        with pytest.raises(HostError, match="cannot be used: mkdir"):
            send(Here(), path, cache, Artifact())


@pytest.mark.parametrize(
    "said",
    [
        b"there\nrubbish\n", b"", b"free 5\n", b"0 there\nfree 5\n", b"free 5\n1 there\n", b"free 5\n0 part x\n",
        b"free 5\n0 there\n0 there\n", b"free 5\nfree 5\n0 there\n", b"free 5\n0 there", b"free -5\n0 there\n",
        b"free 5\n" + b"0" * 999, b"free 5\n-0 there\n", b"via\nfree 5\nvia\n0 there\n",
        b"free 5\n0 part 99999999999999999999\n",
    ],
)  # fmt: skip
def test_an_answer_that_makes_no_sense_is_refused(said: bytes) -> None:
    class Liar(Here):
        def run(self, *_: Any, **given: Any) -> Output:
            for place in range(0, len(said), 3):
                given["on_stdout"](said[place : place + 3])
            return Output(0, b"", b"", False, 0.0)

    with places() as (path, cache), pytest.raises(ProtocolError, match="cannot be parsed"):
        send(Liar(), path, cache, Artifact())


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ("via 10.0.0.9 40000 10.0.0.1 22", "10.0.0.9"), ("via ::ffff:10.0.0.9 1 ::ffff:10.0.0.1 22", "10.0.0.9"),
        ("via", ""), ("via 10.0.0.9", ""), ("via $(id) 1 2 3", ""), ("via fe80::1%eth0 1 fe80::2 22", ""),
    ],
)  # fmt: skip
def test_a_host_says_whence_it_sees_the_connection_come(said: str, seen: str) -> None:
    heard: list[tuple[str, int]] = []

    class Sshd(Here):
        def run(self, *_: Any, **given: Any) -> Output:
            given["on_stdout"](f"{said}\nfree 5\n0 there\n".encode())
            return Output(0, b"", b"", False, 0.0)

    with places() as (path, cache):
        shell = RootShell(Sshd())  # type: ignore[arg-type]
        found = lambda one: None  # noqa: E731
        look(shell, [StoredFile.of(Artifact(), path)], begun=lambda *told: heard.append(told), found=found, cache=cache)
    assert heard == [(seen, 5 * 1024)]


def test_without_a_checksum_or_a_file_nothing_is_sent(tmp_path: Path) -> None:
    here = Here()
    with pytest.raises(ArtifactError, match="run `invoke mirror`"):
        send(here, tmp_path, "/nowhere", Artifact(sha256=None))
    with pytest.raises(ArtifactError, match="run `invoke mirror`"):
        send(here, tmp_path / "none", "/nowhere", Artifact())
    assert here.execs == 0


def test_a_file_lies_under_its_checksum() -> None:
    artifact = Artifact(size=5)
    assert host_path(artifact) == f"{CACHE}/{artifact.sha256}/driver.run"
    assert "unpinned" in host_path(Artifact(sha256=None))


def test_one_program_probes_for_all_and_tells_what_is_free(tmp_path: Path) -> None:
    whole, absent, begun = (
        (hashlib.sha256(text).hexdigest(), name) for text, name in ((b"a", "x"), (b"b", "a 'b'"), (b"c", "z"))
    )
    for (sha256, name), text in ((whole, b"a"), (begun, b"")):
        (tmp_path / sha256).mkdir()
        (tmp_path / sha256 / name).write_bytes(text)
    (tmp_path / begun[0] / "z.part").write_bytes(b"12345")
    script = missing_script([whole, absent, begun], str(tmp_path))
    done = subprocess.run(["/bin/sh"], input=script, capture_output=True, text=True, check=True)
    free, *states = done.stdout.splitlines()
    assert states == ["1 part 0", "0 there", "2 part 5"]  # what is missing first; the last one was damaged
    assert re.fullmatch("free [0-9]+", free)
    assert done.stderr == ""


def test_a_file_that_comes_while_others_are_asked_for_is_told_once(tmp_path: Path) -> None:
    """What is missing is sent as soon as the host has said so, and many files are asked for: the first are there before
    the last have been asked for."""
    sums = [hashlib.sha256(text).hexdigest() for text in (b"a", b"b")]
    for sha256 in sums:
        (tmp_path / "cache" / sha256).mkdir(parents=True)
    first = tmp_path / "cache" / sums[0] / "x"
    program(tmp_path / "bin", "stat", f"printf a >{first}; exit 1")
    done = run(missing_script([(sha256, "x") for sha256 in sums], str(tmp_path / "cache")), path=tmp_path / "bin")
    assert done.stdout.decode().splitlines()[1:] == ["0 part 0", "1 part 0"]
    assert first.read_bytes() == b"a"


@pytest.mark.parametrize(
    "artifact", [Artifact(sha256=None, urls=("https://x/y",)), Artifact(urls=("file:///x",)), Artifact()]
)
def test_what_no_host_can_fetch_is_refused(artifact: Artifact) -> None:
    with pytest.raises(ArtifactError, match="hosts cannot fetch it"):
        fetch_script(artifact)


def test_a_file_that_was_damaged_on_the_host_is_not_there(tmp_path: Path):
    """Its name says what it was, not what it is: a flipped bit, a truncation, an empty file."""
    text = b"the toolkit"
    sha256 = hashlib.sha256(text).hexdigest()
    folder = tmp_path / sha256
    folder.mkdir()
    for damaged, said in ((text, "there"), (b"the toolkiT", "part 0"), (b"the", "part 0"), (b"", "part 0")):
        (folder / "cuda.deb").write_bytes(damaged)
        script = missing_script([(sha256, "cuda.deb")], str(tmp_path))
        done = subprocess.run(["/bin/sh"], input=script, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[1] == f"0 {said}"
        assert (folder / "cuda.deb").exists() == (said == "there")
