"""Wheels as files: which of several a Python takes, and how this machine's own pip brings exactly that one."""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import Path

import pytest
from packaging.utils import parse_wheel_filename

from hostwright.common.errors import ArtifactError
from hostwright.common.templates import STANDARD
from hostwright.resources.python.recipe import Recipe
from hostwright.resources.python.wheels import Wheel, choose_wheels
from hostwright.stack.store.artifacts import Store
from hostwright.stack.store.mirroring import mirror
from hostwright.standard.roles.tensorflow import _known_wheels
from tests.unit.stack.test_artifacts import Quiet

UBUNTU_1804 = 27  #: the minor version of the C library of the oldest distribution that a standard stack has
OLD, NEW = "numpy-1.2-cp39-cp39-manylinux2014_x86_64.whl", "numpy-1.2-cp39-cp39-manylinux_2_28_x86_64.whl"


def listed(*files: str) -> str:
    return "".join(f"{number:064x}  {file}\n" for number, file in enumerate(files, 1))


def chosen(python: str, *files: str) -> str:
    return "".join(wheel.file for wheel in choose_wheels([("numpy", "1.2")], listed(*files), python))


@pytest.mark.parametrize("files", [(OLD, NEW), (NEW, OLD)])
def test_of_several_wheels_the_one_for_the_oldest_c_library_is_taken(files: tuple[str, ...]) -> None:
    assert chosen("3.9", *files) == OLD


@pytest.mark.parametrize(
    ("python", "file", "taken"),
    [
        ("3.7", "numpy-1.2-cp37-cp37m-manylinux1_x86_64.whl", True),
        ("3.8", "numpy-1.2-cp37-cp37m-manylinux1_x86_64.whl", False),
        ("3.9", "numpy-1.2-cp37-abi3-manylinux2014_x86_64.whl", True),
        ("3.9", "numpy-1.2-cp311-abi3-manylinux2014_x86_64.whl", False),
        ("3.10", "numpy-1.2-py2.py3-none-any.whl", True),
        ("3.10", "numpy-1.2-py2-none-any.whl", False),
        ("3.10", "numpy-1.2-cp310-cp310-manylinux2014_aarch64.whl", False),
        ("3.10", "numpy-1.2-cp310-cp310-win_amd64.whl", False),
        ("3.10", "numpy-1.2-cp310-cp310-musllinux_1_2_x86_64.whl", False),
        ("3.10", "numpy-1.2-cp310-cp310-linux_x86_64.whl", True),
        ("3.10", "numpy-1.3-cp310-cp310-linux_x86_64.whl", False),
    ],
)
def test_a_wheel_for_another_python_machine_or_version_is_none(python: str, file: str, taken: bool) -> None:
    assert chosen(python, file) == (file if taken else "")


def test_of_two_hashes_of_one_file_the_stacks_own_counts() -> None:
    """They stand behind those that Hostwright knows: somebody built the wheel themselves."""
    (wheel,) = choose_wheels([("numpy", "1.2")], listed(OLD, OLD), "3.9")
    assert wheel.sha256 == f"{2:064x}"


def test_every_pin_of_the_standard_stacks_has_a_wheel_for_the_oldest_distribution() -> None:
    """Names of artifacts are unique in a stack, over all of its Pythons."""
    names: dict[str, str] = {}
    for file in sorted((STANDARD / "stacks" / "constraints").glob("*.txt")):
        python = re.sub(r".*-py3(\d+)", r"3.\1", file.stem)
        made = Recipe("tf", python, "", file.read_text(), wheels=_known_wheels(), mirrored=True)
        wheels = made.from_mirror()
        assert made.unlisted == ()
        assert len(wheels) == len(made.pins) + 1, "and pip"
        for wheel in wheels:
            platforms = [tag.platform for tag in parse_wheel_filename(wheel.file)[3]]
            newest = [int(minor) for text in platforms for minor in re.findall(r"^manylinux_2_(\d+)_", text)]
            assert not newest or min(newest) <= UBUNTU_1804, wheel.file
            assert names.setdefault(wheel.name, wheel.file) == wheel.file


# pip itself, and an index that is a directory


def index(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that pip knows is this directory."""
    for name, value in {"CONFIG_FILE": "/dev/null", "NO_INDEX": "1", "FIND_LINKS": str(folder)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)


def make_wheel(folder: Path, file: str, requires: str = ">=3.6") -> str:
    """A wheel as pip wants it; its sha256."""
    name, version, *_, tags = (*file.removesuffix(".whl").split("-", 2),)
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / file, "w") as archive:
        archive.writestr(f"{name}.py", "")
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Python: {requires}\n"
        archive.writestr(f"{info}/METADATA", about)
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tags}\n")
        archive.writestr(f"{info}/RECORD", "")
    return hashlib.sha256((folder / file).read_bytes()).hexdigest()


def wheel_of(file: str, sha256: str, python: str) -> Wheel:
    name, version = file.split("-")[:2]
    (found,) = choose_wheels([(name, version)], f"{sha256}  {file}\n", python)
    return found


@pytest.mark.parametrize(
    ("python", "file"),
    [
        ("3.7", "tool-1.2-cp37-cp37m-manylinux1_x86_64.whl"),
        ("3.8", "tool-1.2-cp36-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"),
        ("3.9", OLD.replace("numpy", "tool")),
        ("3.10", "tool-1.2-py3-none-manylinux2010_x86_64.whl"),
        ("3.13", "tool-1.2-py2.py3-none-any.whl"),
    ],
)
def test_pip_brings_the_wheel_of_whichever_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: str, file: str
) -> None:
    """Beside it is one that pip would prefer, had it the choice; a wheel may exclude the first patch releases."""
    index(tmp_path / "index", monkeypatch)
    sha256 = make_wheel(tmp_path / "index", file, requires="!=3.9.0,!=3.9.1,>=3.7")
    series = python.replace(".", "")
    make_wheel(tmp_path / "index", f"tool-1.2-1-cp{series}-none-manylinux_2_28_x86_64.whl")
    store = Store(tmp_path / "store", (tmp_path,))
    wheel = wheel_of(file, sha256, python)
    (brought,) = mirror([wheel], store, lock=tmp_path / "lock.yml", progress=Quiet())
    assert (brought.file, brought.sha256, brought.came, brought.pinned) == (file, sha256, "fetched", False)
    assert store.locate(wheel).read_bytes() == (tmp_path / "index" / file).read_bytes()
    assert [path.name for path in store.root.rglob("*") if path.is_file()] == [file], "nothing else is kept"


def refused(tmp_path: Path, *wheels: Wheel) -> str:
    store = Store(tmp_path / "store", (tmp_path,))
    with pytest.raises(ArtifactError) as error:
        mirror(wheels, store, lock=tmp_path / "lock.yml", progress=Quiet())
    assert [path for path in store.root.rglob("*") if path.is_file()] == []
    assert not (tmp_path / "lock.yml").exists()
    return str(error.value)


def test_a_wheel_with_another_hash_is_refused_with_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index(tmp_path / "index", monkeypatch)
    theirs = make_wheel(tmp_path / "index", "tool-1.2-py3-none-any.whl")
    told = refused(tmp_path, wheel_of("tool-1.2-py3-none-any.whl", "5" * 64, "3.9"))
    assert "another wheel of tool 1.2" in told and theirs in told and "5" * 64 in told


def test_a_python_for_which_the_index_has_no_wheel_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index(tmp_path / "index", monkeypatch)
    make_wheel(tmp_path / "index", "tool-1.2-cp310-cp310-manylinux1_x86_64.whl")
    told = refused(tmp_path, wheel_of("tool-1.2-cp39-cp39-manylinux1_x86_64.whl", "5" * 64, "3.9"))
    assert "does not serve tool 1.2 for Python 3.9 (tool-1.2-cp39-cp39-manylinux1_x86_64.whl)" in told
    assert "No matching distribution found" in told


def test_an_index_that_cannot_be_reached_is_asked_once_and_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index(tmp_path / "index", monkeypatch)
    (tmp_path / "index").mkdir()
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("PIP_INDEX_URL", "http://somebody:hunter2@127.0.0.1:9/simple")
    calls = []
    bring = Wheel.bring
    monkeypatch.setattr(Wheel, "bring", lambda self, folder: calls.append(self.file) or bring(self, folder))
    files = ("tool-1.2-py3-none-any.whl", "other-1.2-py3-none-any.whl")
    told = refused(tmp_path, *(wheel_of(file, "5" * 64, "3.9") for file in files))
    assert told.startswith("2 files could not be downloaded because pip's package index cannot be reached (Connection ")
    assert "hunter2" not in told and "--from DIR" in told
    assert calls == [files[0]]


def test_a_machine_without_pip_is_told_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    told = refused(tmp_path, wheel_of("tool-1.2-py3-none-any.whl", "5" * 64, "3.9"))
    assert "because pip is not installed on this machine: run " in told
