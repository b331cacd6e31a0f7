"""Archives of images: what they hold, and those that lie."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostwright.common.errors import InputError
from hostwright.standard.roles.container.images.archives import archive as archives
from hostwright.standard.roles.container.images.archives.contents import Contents, read_contents
from hostwright.standard.roles.container.images.archives.parts import ArchivedImage
from tests.unit.roles.container.images.archives import (
    CONFIG,
    ID,
    LAYERS,
    NAME,
    config,
    described,
    layout,
    packed,
    put,
    saved,
    sha,
)
from tests.unit.roles.container.images.disagreeing import archives as disagreeing

WHOLE = (ArchivedImage(ID, (NAME,)),)


def contents(folder: Path, data: bytes) -> Contents:
    return read_contents(put(folder, data))


def refused(folder: Path, data: bytes) -> str:
    path = put(folder, data)
    with pytest.raises(InputError) as caught:
        read_contents(path)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value).removeprefix(f"{path}: this is no archive of images: ")


def manifest(files: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The files with another entry in manifest.json."""
    entry = {**json.loads(files["manifest.json"])[0], **more}
    return {**files, "manifest.json": json.dumps([entry]).encode()}


# ---------------------------------------------------------------- what tools write


@pytest.mark.parametrize("press", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_what_docker_save_writes(tmp_path: Path, press: Any) -> None:
    data = press(packed(saved()))
    found = contents(tmp_path, data)
    assert found.images == WHOLE
    assert (found.archive.sha256, found.archive.size, found.manifest) == (sha(data), len(data), "")
    assert found.unpacked == sum(map(len, LAYERS))


@pytest.mark.parametrize("pressed", [True, False])
@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("prefix", ["", "./"])
def test_an_oci_layout_gets_the_manifest_that_docker_needs(
    tmp_path: Path, pressed: bool, nested: bool, prefix: str
) -> None:
    """``tar -C layout -c .`` puts ``./`` before all names (orbstack/orbstack#2059); buildx nests indexes."""
    data = packed(layout(packed=pressed, nested=nested), prefix=prefix)
    found = contents(tmp_path, data)
    assert found.images == WHOLE
    assert found.unpacked == sum(map(len, LAYERS))
    (entry,) = json.loads(found.manifest)
    assert entry["Config"] == f"blobs/sha256/{sha(CONFIG)}"
    assert entry["RepoTags"] == [NAME]
    assert len(entry["Layers"]) == 2
    assert data[found.archive.end :].strip(b"\0") == b""


def test_docker_25_writes_both_and_its_index_may_lack_the_layers(tmp_path: Path) -> None:
    """moby/moby#47065: manifest.json is right, and the manifest of the layout has no layers."""
    files: dict[str, Any] = {}
    whole = {"config": described(files, CONFIG), "layers": []}
    index = {"manifests": [described(files, json.dumps(whole).encode())]}
    layers = [described(files, part)["digest"] for part in LAYERS]
    entry = {
        "Config": f"blobs/sha256/{sha(CONFIG)}",
        "RepoTags": [NAME],
        "Layers": [f"blobs/sha256/{digest[7:]}" for digest in layers],
    }
    files |= {"index.json": json.dumps(index).encode(), "manifest.json": json.dumps([entry]).encode()}
    found = contents(tmp_path, packed(files))
    assert (found.images, found.manifest) == (WHOLE, "")


def test_a_layer_that_is_there_twice_is_a_link(tmp_path: Path) -> None:
    """moby/moby#24003: ``docker save`` writes a link to the folder of the same layer."""
    text = config(LAYERS[0], LAYERS[0])
    files = saved((LAYERS[0], LAYERS[0]), text)
    first, second = json.loads(files["manifest.json"])[0]["Layers"]
    del files[second]
    found = contents(tmp_path, packed(files, {second: f"../{first}"}))
    assert found.images == (ArchivedImage(f"sha256:{sha(text)}", (NAME,)),)


@pytest.mark.parametrize(
    "of, sentence",
    [
        ("a directory by its pax path", "'x' has content that not all programs take for a file's"),
        ("a directory by its GNU name", "'x' has content that not all programs take for a file's"),
        ("a directory by its own name", "a member is a directory by its name alone"),
        ("a file by its pax path", "a member is a directory by its name alone"),
        ("a directory with content", "'x' has content that not all programs take for a file's"),
        ("two pax headers", "a header of it says the attributes of a member twice"),
        ("two sizes", "a header of it says the size of a member twice"),
        ("a GNU header with a prefix", "a member's name has a part that not all programs read"),
        ("a key in another case", "manifest.json has 'repotags', which Docker takes for a key of another spelling"),
    ],
)
def test_what_docker_reads_otherwise_is_refused(tmp_path: Path, of: str, sentence: str) -> None:
    assert refused(tmp_path, disagreeing()[of]) == sentence


def hard_linked(files: dict[str, Any], name: str, target: str, size: int = 0) -> bytes:
    """The files as an archive, with one more that is a hard link."""
    out = io.BytesIO(packed(files))
    with tarfile.open(fileobj=out, mode="a") as tar:
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.size = tarfile.LNKTYPE, target, size
        tar.addfile(info)
    return out.getvalue()


@pytest.mark.parametrize("dot", ["", "./"])
def test_a_file_that_is_a_hard_link_to_one_before_it_is_that_file(tmp_path: Path, dot: str) -> None:
    """What ``tar -c`` makes of an unpacked image whose equal files share their blocks."""
    text = config(LAYERS[0], LAYERS[0])
    files = saved((LAYERS[0], LAYERS[0]), text)
    first, second = json.loads(files["manifest.json"])[0]["Layers"]
    del files[second]
    found = contents(tmp_path, hard_linked(files, f"{dot}{second}", f"{dot}{first}"))
    assert found.images == (ArchivedImage(f"sha256:{sha(text)}", (NAME,)),)


@pytest.mark.parametrize(
    "target, size, sentence",
    [
        ("/etc/passwd", 0, "leads out of it"),
        ("../etc/passwd", 0, "leads out of it"),
        ("gone", 0, "'x' is a hard link to 'gone', and that is no file before it"),
        ("x", 0, "'x' is a hard link to 'x', and that is no file before it"),
        ("manifest.json", 512, "'x' has content that not all programs take for a file's"),
    ],
)
def test_a_hard_link_to_what_is_no_file_of_the_archive_is_refused(
    tmp_path: Path, target: str, size: int, sentence: str
) -> None:
    assert sentence in refused(tmp_path, hard_linked(saved(), "x", target, size))


def test_skopeo_links_from_the_old_names_of_layers(tmp_path: Path) -> None:
    """podman-container-tools/skopeo#1313: layers by checksum, and ``ID/layer.tar`` leads to them."""
    names = [f"{sha(part)}.tar" for part in LAYERS]
    files = {f"{sha(CONFIG)}.json": CONFIG, **dict(zip(names, LAYERS, strict=True))}
    entry = {"Config": f"{sha(CONFIG)}.json", "RepoTags": [f"docker.io/{NAME}"], "Layers": names}
    files["manifest.json"] = json.dumps([entry]).encode()
    found = contents(tmp_path, packed(files, {"abc/layer.tar": f"../{names[0]}"}))
    assert found.images == WHOLE


@pytest.mark.parametrize(
    "written, shown",
    [
        ("docker.io/library/hello-world:1", "hello-world:1"),
        ("docker.io/house/tool:1", "house/tool:1"),
        ("localhost/tool:1", "localhost/tool:1"),
        ("registry.example:5000/a/b:1.0_x", "registry.example:5000/a/b:1.0_x"),
    ],
)
def test_names_are_those_that_docker_shows(tmp_path: Path, written: str, shown: str) -> None:
    assert contents(tmp_path, packed(saved(names=[written]))).images == (ArchivedImage(ID, (shown,)),)
    key = "io.containerd.image.name"
    assert contents(tmp_path, packed(layout(name=written, key=key))).images == (ArchivedImage(ID, (shown,)),)


def test_long_names_and_foreign_attributes_are_read(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in {**saved(), "x" * 150 + "/" + "y" * 200: b"z"}.items():
            info = tarfile.TarInfo(name.rstrip("/"))
            info.type, info.size = (tarfile.DIRTYPE, 0) if data is None else (tarfile.REGTYPE, len(data))
            info.pax_headers = {"mtime": "1.5", "SCHILY.xattr.user.a": "b"}
            tar.addfile(info, io.BytesIO(data or b""))
    assert contents(tmp_path, out.getvalue()).images == WHOLE


def test_an_image_without_layers(tmp_path: Path) -> None:
    text = config()
    files = manifest(saved((), text), Layers=None)
    assert contents(tmp_path, packed(files)).images == (ArchivedImage(f"sha256:{sha(text)}", (NAME,)),)


# ---------------------------------------------------------------- what lies


@pytest.mark.parametrize(
    "data, sentence",
    [
        (b"", "it ends too early"),
        (b"no archive", "it ends too early"),
        (b"PK\x03\x04" * 1000, "it is damaged"),
        (packed(saved())[:3000], "it ends"),
        (gzip.compress(packed(saved()))[:-20], "it is damaged"),
        (packed({}), "it has neither manifest.json"),
        (packed(saved()) + b"more", "more follows its end"),
        (packed({**saved(), "../etc/passwd": b"x"}), "leads out of it"),
        (packed({**saved(), "/etc/passwd": b"x"}), "leads out of it"),
        (packed({**saved(), "a\x1b[2J": b"x"}), "leads out of it"),
        (packed(saved(), {"link": "manifest.json"}), "only a layer may be one"),
        (packed(saved(), {"x/layer.tar": "../../etc/passwd"}), "only a layer may be one"),
        (packed(saved(), {"x/layer.tar": "/etc/passwd"}), "only a layer may be one"),
        (packed(saved(names=[])), "an image in it has no name"),
        (packed(saved(names=["house/tool"])), "is no name with a tag"),
        (packed(saved(names=["house/tool:1 --privileged"])), "is no name with a tag"),
        (packed(saved(names=["-x:1"])), "is no name with a tag"),
        (packed(layout(name="latest")), "is no name with a tag"),
        (packed({**saved(), "manifest.json": b"[]"}), "names 0 images"),
        (packed({**saved(), "manifest.json": b"[" * 100_000}), "manifest.json: "),
        (packed({**saved(), "manifest.json": b"\0" * 100}), "is no JSON document"),
        (packed(manifest(saved(), Config="../x.json")), "leads out of it"),
        (packed(manifest(saved(), Config="gone.json")), "is not in it"),
        (packed(saved(text=config(*reversed(LAYERS)))), "layer 1 is not what the image says"),
        (packed(saved(text=config(LAYERS[0]))), "has 1 layers, and 2 are listed"),
        (packed(saved(text=config(*LAYERS, architecture="arm64"))), "not for Linux on amd64"),
        (packed({**saved(), f"{sha(CONFIG)}.json": config(*LAYERS, author="x")}), "another checksum than its name"),
    ],
)
def test_an_archive_that_is_none_or_lies_is_refused(tmp_path: Path, data: bytes, sentence: str) -> None:
    assert sentence in refused(tmp_path, data)


def test_a_blob_that_is_another_or_of_another_length_is_refused(tmp_path: Path) -> None:
    files = layout(packed=False)
    blob = f"blobs/sha256/{sha(LAYERS[0])}"
    altered = f"the blob sha256:{sha(LAYERS[0])} was altered: its bytes have the checksum {sha(LAYERS[1])}"
    assert refused(tmp_path, packed({**files, blob: LAYERS[1]})) == altered
    index = json.loads(files["index.json"])
    index["manifests"][0]["size"] += 1
    assert "bytes instead of" in refused(tmp_path, packed({**files, "index.json": json.dumps(index).encode()}))
    del files[blob]
    assert f"the blob sha256:{sha(LAYERS[0])} is missing" == refused(tmp_path, packed(files))


def test_other_kinds_of_members_and_a_member_twice_are_refused(tmp_path: Path) -> None:
    for kind in (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE):
        out = io.BytesIO(packed(saved()))
        with tarfile.open(fileobj=out, mode="a") as tar:
            info = tarfile.TarInfo("x")
            info.type, info.linkname = kind, "manifest.json"
            tar.addfile(info)
        assert "is neither a file nor a directory" in refused(tmp_path, out.getvalue())
    out = io.BytesIO(packed(saved()))
    with tarfile.open(fileobj=out, mode="a") as tar:
        info = tarfile.TarInfo("./manifest.json")
        tar.addfile(info)
    assert "is in it twice" in refused(tmp_path, out.getvalue())


def test_a_size_that_is_not_there_costs_no_memory(tmp_path: Path) -> None:
    """A header that says 8 GiB, and a name that would be as long."""
    for kind, sentence in (
        (tarfile.REGTYPE, "in the middle of a file"),
        (b"L", "longer than any name"),
        (b"x", "longer"),
    ):
        info = tarfile.TarInfo("x")
        info.type, info.size = kind, 8 << 30
        assert sentence in refused(tmp_path, info.tobuf(tarfile.GNU_FORMAT) + b"x" * 1024)


@pytest.mark.parametrize("inside", [False, True])
def test_a_few_bytes_that_unpack_to_a_disk_are_refused_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: bool
) -> None:
    monkeypatch.setattr(archives, "SPARED_BYTES", 1 << 20)
    bomb = gzip.compress(b"\0" * (64 << 20))
    data = packed({"layer.tar": bomb}) if inside else bomb[:-8] + gzip.compress(b"")
    if not inside:
        info = tarfile.TarInfo("layer.tar")
        info.size = 64 << 20
        data = gzip.compress(info.tobuf() + b"\0" * (64 << 20))
    assert "unpacks to more than" in refused(tmp_path, data)


def test_many_streams_in_a_layer_are_read_in_time(tmp_path: Path) -> None:
    """Each gzip member is 20 bytes: a reader that copies the rest for each would take hours."""
    data = packed({"layer.tar": gzip.compress(b"") * 200_000})
    began = time.process_time()
    assert "neither manifest.json" in refused(tmp_path, data)
    assert time.process_time() - began < 20


@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damage_anywhere_is_an_error_or_changes_nothing_that_matters(tmp_path: Path, data: st.DataObject) -> None:
    """One byte is another: what is read is the same image, or an ``InputError``; never another exception."""
    whole = bytearray(packed(data.draw(st.sampled_from([saved(), layout(), layout(packed=False, nested=True)]))))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    try:
        found = contents(tmp_path, bytes(whole))
    except InputError:
        return
    assert [image.id for image in found.images] == [ID]


@given(st.binary(max_size=4096))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_an_error_of_the_input(tmp_path: Path, data: bytes) -> None:
    for press in (bytes, gzip.compress):
        refused(tmp_path, press(data))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it cannot be read: No such file"):
        read_contents(tmp_path / "gone.tar")
    with pytest.raises(InputError, match="it cannot be read: Is a directory"):
        read_contents(tmp_path)
