"""The store: final names for verified files only, pins at the first download, errors with both checksums."""

from __future__ import annotations

import hashlib
import io
import os
import threading
from dataclasses import dataclass
from pathlib import Path

import filelock
import pytest
from filelock import lock_descriptor
from rich.console import Console

from hostwright.cli.live.transfers import LineProgress, make_progress, summary
from hostwright.common.errors import ArtifactError, InputError
from hostwright.stack.store.artifacts import Pin, Store, locked, read_pins, write_pin
from hostwright.stack.store.mirroring import Mirrored, mirror
from hostwright.stack.store.sources import FileSource, OwnFiles

CONTENT = b"the vendor's file" * 1000


def sum_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class Artifact:
    name: str = "cudnn"
    file: str = "cudnn 8.tgz"
    urls: tuple[str, ...] = ()
    sha256: str | None = sum_of(CONTENT)
    size: int | None = len(CONTENT)
    stand_in: bool = False


class Quiet:
    def show(self, file: str, done: int, total: int | None) -> None: ...
    def end(self, file: str, note: str) -> None: ...


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", (tmp_path / "stacks",))


@pytest.fixture
def vendor(tmp_path: Path) -> Path:
    folder = tmp_path / "vendor dir"
    folder.mkdir()
    (folder / "cudnn 8.tgz").write_bytes(CONTENT)
    return folder


def bring(store: Store, *artifacts: Artifact, source: FileSource | None = None) -> list[Mirrored]:
    return mirror(artifacts, store, lock=store.lock_file("tf"), source=source, progress=Quiet())


def nothing_else_than(store: Store, *paths: Path) -> bool:
    return sorted(one for one in store.root.rglob("*") if one.is_file()) == sorted(paths)


def test_what_the_user_has_is_taken_and_checked(store: Store, vendor: Path) -> None:
    (one,) = bring(store, Artifact(), source=OwnFiles(vendor))
    assert (one.came, one.pinned, one.size) == ("taken", False, len(CONTENT))
    assert store.locate(Artifact()) == one.path
    assert one.path.read_bytes() == CONTENT
    assert nothing_else_than(store, one.path)
    (again,) = bring(store, Artifact())
    assert again.came == "was there"


def test_the_size_of_a_file_that_nobody_has_published_is_that_of_the_file_here(store: Store, vendor: Path) -> None:
    assert store.size_of(Artifact(size=None)) == 0
    bring(store, Artifact(), source=OwnFiles(vendor))
    assert store.size_of(Artifact(size=None)) == len(CONTENT)
    assert store.size_of(Artifact(size=7)) == 7
    assert store.size_of(Artifact(sha256=None, size=None)) == 0


def test_an_artifact_in_a_subdirectory_is_found(store: Store, vendor: Path) -> None:
    (one,) = bring(store, Artifact(), source=OwnFiles(vendor.parent))
    assert one.came == "taken"


def test_the_users_file_keeps_its_mode(store: Store, vendor: Path) -> None:
    (vendor / "cudnn 8.tgz").chmod(0o600)
    bring(store, Artifact(), source=OwnFiles(vendor))
    assert (vendor / "cudnn 8.tgz").stat().st_mode & 0o777 == 0o600


def test_a_wrong_file_of_the_user_is_refused_with_both_sums(store: Store, vendor: Path) -> None:
    other = Artifact(sha256="0" * 64)
    with pytest.raises(ArtifactError) as caught:
        bring(store, other, source=OwnFiles(vendor))
    assert "0" * 64 in str(caught.value)
    assert sum_of(CONTENT) in str(caught.value)
    assert (vendor / "cudnn 8.tgz").exists()
    assert nothing_else_than(store)


def test_a_file_of_another_length_is_refused(store: Store, vendor: Path) -> None:
    with pytest.raises(ArtifactError, match=r"17,000 bytes, but the stack specifies 5"):
        bring(store, Artifact(size=5), source=OwnFiles(vendor))


def test_urls_are_tried_in_order(store: Store, vendor: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_bytes(b"x" * len(CONTENT))
    right = (vendor / "cudnn 8.tgz").as_uri()
    (one,) = bring(store, Artifact(urls=(f"file://{tmp_path}/none", wrong.as_uri(), right)))
    assert one.came == "fetched"
    assert one.path.read_bytes() == CONTENT
    assert nothing_else_than(store, one.path)


def test_every_failure_of_every_file_is_told_and_the_others_come(store: Store, vendor: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_bytes(b"x" * len(CONTENT))
    artifacts = (
        Artifact("a", urls=(f"file://{tmp_path}/none", wrong.as_uri(), "ftp://vendor/x")),
        Artifact("b", "b.run", sha256="1" * 64),
        Artifact("c", urls=((vendor / "cudnn 8.tgz").as_uri(),)),
    )
    with pytest.raises(ArtifactError) as caught:
        bring(store, *artifacts)
    first, second = str(caught.value).splitlines()
    assert "No such file" in first
    assert sum_of(b"x" * len(CONTENT)) in first
    assert "unsupported scheme" in first
    assert second == "b: b.run has no public URL; download it yourself and run `invoke mirror --from DIR`"
    assert store.locate(artifacts[2]).exists()


def test_a_file_without_a_sum_is_pinned_at_first_sight(store: Store, vendor: Path) -> None:
    artifact = Artifact(sha256=None, size=None)
    with pytest.raises(ArtifactError, match=r"cudnn 8.tgz has no pinned checksum yet; run `invoke mirror`"):
        store.locate(artifact)
    (one,) = bring(store, artifact, source=OwnFiles(vendor))
    assert one.pinned
    assert read_pins(store.lock_file("tf")) == {"cudnn": Pin("cudnn 8.tgz", sum_of(CONTENT), len(CONTENT))}
    (again,) = bring(store, artifact)
    assert (again.came, again.pinned) == ("was there", False)


def test_a_file_that_changed_since_it_was_pinned_is_refused(store: Store, vendor: Path) -> None:
    artifact = Artifact(sha256=None, size=None)
    (one,) = bring(store, artifact, source=OwnFiles(vendor))
    one.path.unlink()
    (vendor / "cudnn 8.tgz").write_bytes(b"another")
    with pytest.raises(ArtifactError) as caught:
        bring(store, artifact, source=OwnFiles(vendor))
    for part in (sum_of(CONTENT), sum_of(b"another"), str(store.lock_file("tf"))):
        assert part in str(caught.value)


def test_a_pin_of_another_file_is_no_pin(store: Store, vendor: Path) -> None:
    write_pin(store.lock_file("tf"), "cudnn", Pin("cudnn 7.tgz", "2" * 64, 1))
    (one,) = bring(store, Artifact(sha256=None, size=None), source=OwnFiles(vendor))
    assert one.pinned


def test_one_process_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    folder, order, waits = tmp_path / "a" / "b", [], threading.Event()

    def second() -> None:
        waits.set()
        with locked(folder):
            order.append("second")

    with locked(folder):
        thread = threading.Thread(target=second)
        thread.start()
        assert waits.wait(60)
        thread.join(0.2)
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]


def test_waiter_recreates_a_removed_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, calls = tmp_path / "incoming", []

    def lock_after_its_owner_left(descriptor: int) -> bool:
        if not calls:
            folder.rmdir()
        calls.append(descriptor)
        return lock_descriptor(descriptor)

    monkeypatch.setattr(filelock, "lock_descriptor", lock_after_its_owner_left)
    with locked(folder):
        assert len(calls) == 2
        descriptor = os.open(folder, os.O_RDONLY)
        assert not lock_descriptor(descriptor, blocking=False)
        os.close(descriptor)


def test_a_damaged_store_is_cured(store: Store, vendor: Path) -> None:
    (one,) = bring(store, Artifact(), source=OwnFiles(vendor))
    one.path.unlink()
    one.path.write_bytes(b"x" * len(CONTENT))
    assert bring(store, Artifact(urls=((vendor / "cudnn 8.tgz").as_uri(),)))[0].came == "fetched"
    assert one.path.read_bytes() == CONTENT
    one.path.unlink()
    one.path.write_bytes(b"x")
    with pytest.raises(ArtifactError, match="has 1 bytes, expected 17,000"):
        store.locate(Artifact())


def test_a_missing_file_says_what_to_do(store: Store) -> None:
    with pytest.raises(ArtifactError, match=r"cudnn 8.tgz is not on this machine; run `invoke mirror`"):
        store.locate(Artifact())


def test_from_must_be_a_directory(store: Store, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a directory"):
        bring(store, Artifact(), source=OwnFiles(tmp_path / "none"))


@pytest.mark.parametrize(
    "text", ["- a", "artifacts: {a: {file: x}}", "a: [", "artifacts: {a: {file: x, sha256: 1, size: 1}}"]
)
def test_a_damaged_lock_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tf.lock.yml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"tf.lock.yml: this lock file is damaged"):
        read_pins(path)


def test_pins_are_kept_beside_their_stack(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "two" / "tf.yml").write_text("")
    store = Store(tmp_path, (tmp_path / "one", tmp_path / "two"))
    assert store.lock_file("tf") == tmp_path / "two" / "tf.lock.yml"
    assert store.lock_file("other") == tmp_path / "one" / "other.lock.yml"


def test_the_place_of_the_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOSTWRIGHT_ARTIFACTS", str(tmp_path))
    assert Store.default().root == tmp_path
    monkeypatch.delenv("HOSTWRIGHT_ARTIFACTS")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert Store.default().root == Path("/cache/hostwright/artifacts")


def test_progress_in_a_pipe_is_a_line_a_tenth() -> None:
    console = Console(file=io.StringIO(), width=100)
    progress = LineProgress(console)
    for done in range(0, 1001):
        progress.show("a [b] c", done, 1000)
    progress.end("a [b] c", "fetched")
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(lines) == 12
    assert lines[0] == "a [b] c: 0 B of 1 kB"
    assert lines[-1] == "a [b] c: fetched"


def test_progress_in_a_terminal_is_a_bar_with_rate_and_time_left() -> None:
    console = Console(file=io.StringIO(), width=120, force_terminal=True)
    with make_progress(console) as progress:
        progress.show("driver.run", 0, 2_000_000)
        progress.show("driver.run", 1_000_000, 2_000_000)
        progress.end("driver.run", "fetched")
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "/2.0 MB" in text
    assert "driver.run: fetched" in text


def test_the_summary_marks_stand_ins() -> None:
    console = Console(file=io.StringIO(), width=120)
    console.print(summary([Mirrored("a", "a.run", Path("/a"), "0" * 64, 1234, "fetched", True, True)]))
    assert "1 kB" in console.file.getvalue()  # type: ignore[attr-defined]
    assert "fetched, pinned now, STAND-IN" in console.file.getvalue()  # type: ignore[attr-defined]
