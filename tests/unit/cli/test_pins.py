"""``pins``: constraints with hashes, from a made-up index of wheels and the real pip."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from hostwright.cli.tasks.keep import pins
from hostwright.common.errors import InputError, InputErrors
from hostwright.common.request import Request
from hostwright.resources.python import pinning
from hostwright.resources.python.pinning import pinned
from hostwright.resources.python.recipe import Recipe


def wheel(index: Path, file: str, *requires: str, python: str = ">=3.6") -> str:
    """Write a wheel with only its metadata, and return its sha256."""
    name, version = file.split("-")[:2]
    info = f"{name}-{version}.dist-info"
    metadata = f"Requires-Python: {python}\n" + "".join(f"Requires-Dist: {each}\n" for each in requires)
    tags = "-".join(file.removesuffix(".whl").split("-")[2:])
    with zipfile.ZipFile(index / file, "w") as made:
        made.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}")
        made.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tags}\n")
        made.writestr(f"{info}/RECORD", "")
    return hashlib.sha256((index / file).read_bytes()).hexdigest()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Configure pip with a directory of wheels as its only index."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in {
        "PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "PIP_CONSTRAINT": "",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    return folder


def test_each_python_gets_its_wheels_with_hashes_and_what_its_conditions_say(index: Path) -> None:
    """This machine has another Python: markers apply to the requested Python."""
    old = wheel(index, "science-2.9-cp310-cp310-manylinux2014_x86_64.whl", 'older; python_version < "3.11"', "tool")
    new = wheel(index, "science-2.9-cp312-cp312-manylinux2014_x86_64.whl", 'older; python_version < "3.11"', "tool")
    older, tool = wheel(index, "older-1.0-py3-none-any.whl"), wheel(index, "Tool-3-py2.py3-none-any.whl")
    assert pinned(["science==2.9"], "3.10", 28) == (
        "# What science==2.9 needs on Python 3.10 (x86_64, glibc 2.28 or newer), by `hostwright pins`.\n"
        f"older==1.0 --hash=sha256:{older}  # older-1.0-py3-none-any.whl\n"
        f"science==2.9 --hash=sha256:{old}  # science-2.9-cp310-cp310-manylinux2014_x86_64.whl\n"
        f"tool==3 --hash=sha256:{tool}  # Tool-3-py2.py3-none-any.whl\n"
    )
    text = pinned(["science==2.9"], "3.12", 28)
    assert [line.partition(" ")[0] for line in text.splitlines()[1:]] == ["science==2.9", "tool==3"]
    recipe = Recipe("x", "3.12", "science==2.9", text, mirrored=True)
    assert recipe.hashed() == f"science==2.9 --hash=sha256:{new}\ntool==3 --hash=sha256:{tool}\n"
    assert recipe.unlisted == ()


def test_of_several_wheels_that_for_the_oldest_c_library_is_taken_and_none_for_a_newer_one(index: Path) -> None:
    wheel(index, "science-2.9-cp312-cp312-manylinux_2_28_x86_64.whl")
    wheel(index, "science-2.9-cp312-cp312-manylinux_2_17_x86_64.whl")
    wheel(index, "science-3.0-cp312-cp312-manylinux_2_34_x86_64.whl")
    assert "manylinux_2_17" in pinned(["science"], "3.12", 28)
    assert "science==3.0" in pinned(["science"], "3.12", 34)


def test_an_index_that_lacks_a_wheel_is_told_in_pips_words(index: Path) -> None:
    wheel(index, "science-2.9-py3-none-any.whl", "missing==1.0")
    with pytest.raises(InputError, match=r"^Python 3\.12: pip found no compatible set of wheels: .*missing==1\.0"):
        pinned(["science"], "3.12", 28)


def test_a_pip_that_resolves_for_its_own_python_alone_is_refused(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(index, "science-2.9-py3-none-any.whl")
    unpatched = pinning._PIP.replace("markers.default_environment = lambda", "unused = lambda")
    monkeypatch.setattr(pinning, "_PIP", unpatched)
    with pytest.raises(InputError, match="cannot resolve requirements for another Python"):
        pinned(["science"], "3.9", 28)


def test_the_pythons_that_a_wheel_needs_are_held_against_the_one_that_is_asked_for(index: Path) -> None:
    """If the index does not list them, pip 23.2 compared them with its own Python."""
    wheel(index, "science-2.9-py3-none-any.whl", python=">=3.99")
    wheel(index, "science-2.8-py3-none-any.whl", python=">=3.6")
    assert "science==2.8 " in pinned(["science"], "3.9", 28)
    assert "science==2.9 " in pinned(["science"], "3.99", 28)


def test_the_files_are_written_and_named_as_a_stack_names_them(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel(index, "science-2.9-py3-none-any.whl")
    stem = tmp_path / "science"
    assert pins(Request(), ["science"], ["3.11", "3.12"], str(stem)) == 0
    assert capsys.readouterr().out.splitlines() == [
        f'"3.11": {tmp_path.name}/science-py311.txt',
        f'"3.12": {tmp_path.name}/science-py312.txt',
    ]
    assert "science==2.9 --hash=sha256:" in Path(f"{stem}-py312.txt").read_text()


def test_all_mistakes_in_the_options_are_told_at_once() -> None:
    with pytest.raises(InputErrors) as told:
        pins(Request(), ["a @ https://example.org/a.whl"], ["4"], glibc="new")
    assert [str(error).partition(":")[0] for error in told.value.errors] == ["--requirement", "--python", "--glibc"]
