"""A SavedModel on the controller: selection of its directory, completeness, and digest."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from hostwright.common.errors import InputError
from hostwright.standard.roles.serving.models.directory import pack, read_model
from hostwright.standard.roles.serving.models.wire import Graph, graphs_of

#: half plus two, saved by TensorFlow 2.9.0 with three signatures
HALF_PLUS_TWO = Path(__file__).parents[3] / "fixtures" / "serving" / "half-plus-two"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HALF_PLUS_TWO, tmp_path / "half" / "2"))


def refused(folder: Path, version: int | None = None, signature: str = "") -> str:
    with pytest.raises(InputError) as caught:
        read_model(folder, version, signature)
    return str(caught.value)


def varint(number: int) -> bytes:
    more = b""
    while number > 127:
        more += bytes([number & 127 | 128])
        number >>= 7
    return more + bytes([number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def saved(*graphs: tuple[tuple[str, ...], tuple[str, ...]]) -> bytes:
    """Return a ``saved_model.pb`` with graphs of these tags and signatures."""
    text = b"\x08\x01"  # version of the schema
    for tags, signatures in graphs:
        info = b"".join(field(4, tag.encode()) for tag in tags)
        entries = b"".join(field(5, field(1, name.encode()) + field(2, b"")) for name in signatures)
        text += field(2, field(1, info) + field(2, b"x" * 300) + entries)
    return text


def test_what_tensorflow_saved_is_read(model: Path) -> None:
    assert graphs_of(model / "saved_model.pb") == (
        Graph(("serve",), ("ints", "serving_default", "two"), restores=True),
    )
    read = read_model(model)
    assert (read.number, [name for _, name in read.files]) == (
        2, ["saved_model.pb", "variables/variables.data-00000-of-00001", "variables/variables.index"],
    )  # fmt: skip
    assert read.size == sum(file.stat().st_size for file in model.rglob("*") if file.is_file())


def test_a_digest_says_which_files_these_are(model: Path, tmp_path: Path) -> None:
    before = read_model(model).digest
    again = shutil.copytree(model, tmp_path / "elsewhere" / "7")
    assert read_model(Path(again)).digest == before
    (model / "variables/variables.index").rename(model / "variables/variables.index2")
    (model / "variables/variables.index").write_bytes((model / "variables/variables.index2").read_bytes())
    assert read_model(model).digest != before


def test_versions_below_a_directory(model: Path) -> None:
    above = model.parent
    assert read_model(above).folder == model
    shutil.copytree(model, above / "10")
    assert "has the versions 2, 10; choose one with --version" in refused(above)
    assert read_model(above, 10).number == 10
    assert "has the versions 2, 10" in refused(above, 3)
    shutil.copy(model / "saved_model.pb", above)
    assert "is a model itself and also contains the versions 2, 10" in refused(above)


def test_a_directory_of_another_name_has_no_number(model: Path) -> None:
    assert read_model(model.rename(model.with_name("exported"))).number is None


@pytest.mark.parametrize("name", ["v0.1", "v2", "1.0"])
def test_a_version_that_is_no_whole_number_is_refused_unless_one_is_said(model: Path, name: str) -> None:
    """serving#1250, where TensorFlow Serving ignored such a directory."""
    folder = model.rename(model.with_name(name))
    assert "; give the number, such as --version 1" in refused(folder)
    assert read_model(folder, 1).number is None


def test_what_is_not_there(tmp_path: Path) -> None:
    assert "no such directory" in refused(tmp_path / "nowhere")
    (tmp_path / "5").mkdir()
    said = refused(tmp_path, 5)
    assert said.startswith(f"{tmp_path}/5: not a SavedModel: saved_model.pb is missing")


def test_parts_that_a_copy_lost(model: Path) -> None:
    (model / "variables/variables.data-00000-of-00001").unlink()
    assert "variables/variables.data-00000-of-00001 is missing" in refused(model)
    (model / "variables/variables.data-00000-of-00003").touch()
    assert "variables/variables.data-00001-of-00003 is missing" in refused(model)
    (model / "variables/variables.index").unlink()
    assert "variables/variables.index is missing" in refused(model)
    shutil.rmtree(model / "variables")
    assert "variables/variables.index is missing, but the graph restores variables" in refused(model)
    (model / "saved_model.pb").write_bytes(saved((("serve",), ("serving_default",))))
    read_model(model)  # a model without variables


@pytest.mark.parametrize("name", ["0", "000", "9223372036854775808", "1" * 40])
def test_a_number_that_no_version_can_have(model: Path, name: str) -> None:
    """serving#1250: TensorFlow Serving silently ignores a name that it cannot parse as a version."""
    folder = model.rename(model.with_name(name))
    said = refused(folder)
    assert f"{folder}: the directory's name {name} is not a version number (1 to 9223372036854775807)" in said
    assert "--version" in said
    assert read_model(folder, 3).number is None
    assert "is not a version number (1 to" in refused(model.parent)


def test_leading_zeros_make_no_second_version(model: Path) -> None:
    above = model.parent
    again = Path(shutil.copytree(model, above / "002"))
    assert read_model(again).number == 2
    assert "002 and 2 are the same version; move one of them away" in refused(above)
    assert "002 and 2 are the same version" in refused(above, 2)
    assert read_model(model).folder == model


@pytest.mark.parametrize("size", [0, 1, 100, 10_000, 16_000])
def test_a_graph_that_is_cut_off(model: Path, size: int) -> None:
    """At any length, it is refused and not read past its end, also if the rest is a valid message."""
    whole = (model / "saved_model.pb").read_bytes()
    (model / "saved_model.pb").write_bytes(whole[:size])
    assert "saved_model.pb" in refused(model)


@pytest.mark.parametrize(
    "text", [b"<html>not found</html>\n" * 10, b"\x80" * 100, b"version https://git-lfs.github.com\n"]
)
def test_files_that_are_something_else(model: Path, text: bytes) -> None:
    (model / "saved_model.pb").write_bytes(text)
    assert "not a SavedModel" in refused(model)


def test_graphs_and_signatures_that_cannot_be_asked(model: Path) -> None:
    def says(*graphs: tuple[tuple[str, ...], tuple[str, ...]], signature: str = "") -> str:
        (model / "saved_model.pb").write_bytes(saved(*graphs))
        return refused(model, signature=signature)

    assert "no graph for serving (expected tag 'serve', found train; serve+gpu)" in says(
        (("train",), ("serving_default",)), (("serve", "gpu"), ("serving_default",))
    )
    assert "found no graph at all" in says()
    without = "no signature 'serving_default', which serves requests without a signature name; the model has: none"
    assert without in says((("serve",), ("__saved_model_init_op",)))
    assert "no signature 'classify'; the model has: predict" in says((("serve",), ("predict",)), signature="classify")
    (model / "saved_model.pb").write_bytes(saved((("serve",), ("predict",))))
    read_model(model, signature="predict")


def test_links_and_odd_names_are_refused(model: Path) -> None:
    link = model / "assets-of-others"
    link.symlink_to("/etc")
    assert "symbolic link" in refused(model)
    link.unlink()
    (model / "a\nb").touch()
    assert "unusual characters" in refused(model)


def test_a_directory_may_be_deeper_than_python_calls_itself(model: Path) -> None:
    assets = model / "assets"
    assets.mkdir()
    folder = os.open(assets, os.O_RDONLY)
    for level in range(1500):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
        if level == 1200:
            os.close(os.open("vocabulary", os.O_CREAT, dir_fd=folder))
    os.close(folder)
    assert any(name.endswith("d/vocabulary") for _, name in read_model(model).files)
    subprocess.run(["rm", "-r", assets], check=True)  # pytest's own removal is recursive, too


def test_an_archive_is_the_same_to_the_byte(model: Path, tmp_path: Path) -> None:
    read = read_model(model)
    first = pack(read, "half", 2, tmp_path / "a.tar")
    for file in model.rglob("*"):
        file.touch()
    assert pack(read_model(model), "half", 2, tmp_path / "b.tar") == first
    assert first.file == "model-half-2.tar"
    with tarfile.open(tmp_path / "a.tar") as tar:
        assert tar.getnames() == ["sha256sums", *(f"files/{name}" for _, name in read.files)]
