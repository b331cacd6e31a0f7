"""OCI layouts as builders write them: several platforms, attestations, indexes in indexes, without a name; as archives
and as directories."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.standard.roles.container.images.archives.contents import Contents, read_contents
from hostwright.standard.roles.container.images.archives.directories import archive_of
from hostwright.standard.roles.container.images.pushing import push
from tests.unit.roles.container.images.archives import (
    ATTESTATION,
    LAYERS,
    NAME,
    config,
    described,
    laid_out,
    packed,
    platform,
    put,
    saved,
    sha,
)

Files = dict[str, Any]
AMD, ARM = ("linux", "amd64"), ("linux", "arm64")


def built(files: Files, of: tuple[str, str], *, said: bool = True, text: str = "", **more: Any) -> dict[str, Any]:
    """An image of a platform in a layout, as an index describes it; ``said`` where the index says the platform."""
    layers = [gzip.compress(part + text.encode(), mtime=0) for part in LAYERS]
    diffs = [part + text.encode() for part in LAYERS]
    whole = {
        "config": described(files, config(*diffs, os=of[0], architecture=of[1])),
        "layers": [described(files, part) for part in layers],
    }
    if said:
        more["platform"] = {**platform(*of), **more.get("platform", {})}
    return described(files, json.dumps(whole).encode(), **more)


def attested(files: Files) -> dict[str, Any]:
    """What buildx adds beside an image: a manifest of no platform, whose layers are documents."""
    whole = {"config": described(files, b"{}"), "layers": [described(files, b'{"predicate": {}}')]}
    return described(
        files, json.dumps(whole).encode(), platform=platform("unknown", "unknown"), annotations=ATTESTATION
    )


def index_of(files: Files, *of: dict[str, Any], **more: Any) -> dict[str, Any]:
    return described(files, json.dumps({"manifests": of}).encode(), **more)


def named(descriptor: dict[str, Any], name: str = NAME) -> dict[str, Any]:
    tag = name.partition(":")[2]
    both = {"io.containerd.image.name": f"docker.io/{name}", "org.opencontainers.image.ref.name": tag}
    return {**descriptor, "annotations": both}


def as_archive(folder: Path, files: Files) -> Path:
    return put(folder, packed(files))


def as_directory(folder: Path, files: Files) -> Path:
    layout = folder / "layout"
    for name, data in files.items():
        (layout / name).parent.mkdir(parents=True, exist_ok=True)
        (layout / name).write_bytes(data)
    return layout


Given = Callable[[Path, Files], Path]
either = pytest.mark.parametrize("given", [as_archive, as_directory])


def read(path: Path, name: str = "") -> Contents:
    """What ``images.push`` reads of a path that somebody names."""
    with archive_of(path) as file:
        return read_contents(file, name=name, shown=path)


def refused(path: Path, name: str = "") -> str:
    with pytest.raises(InputError) as caught:
        read(path, name)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value).removeprefix(f"{path}: ").removeprefix("this is no archive of images: ")


def ids(found: Contents) -> list[tuple[str, tuple[str, ...]]]:
    return [(image.id, image.tags) for image in found.images]


ID = f"sha256:{sha(config(*LAYERS, os='linux', architecture='amd64'))}"


@either
@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("said", [True, False])
def test_the_image_for_hosts_is_taken_out_of_all_that_a_builder_writes(
    tmp_path: Path, given: Given, depth: int, said: bool
) -> None:
    """Also where an index says no platform, as that of a single manifest does: its configuration does."""
    files: Files = {}
    of = [built(files, ARM, said=said), built(files, AMD, said=said), attested(files)]
    for _ in range(depth):
        of = [index_of(files, *of)]
    found = read(given(tmp_path, laid_out(files, *map(named, of))))
    assert ids(found) == [(ID, (NAME,))]
    (entry,) = json.loads(found.manifest)
    assert entry["RepoTags"] == [NAME]
    assert [entry["Config"], *entry["Layers"]] == [
        f"blobs/sha256/{each}" for each in (ID[7:], *(sha(gzip.compress(part, mtime=0)) for part in LAYERS))
    ]
    assert found.unpacked == sum(map(len, LAYERS))


@either
def test_an_image_with_an_attestation_alone_is_an_image(tmp_path: Path, given: Given) -> None:
    files: Files = {}
    both = index_of(files, built(files, AMD), attested(files))
    assert ids(read(given(tmp_path, laid_out(files, named(both))))) == [(ID, (NAME,))]


@either
def test_other_platforms_may_be_missing(tmp_path: Path, given: Given) -> None:
    """Tools that copy one platform leave the index as it is, whose checksum is the image's name elsewhere."""
    files: Files = {}
    other = {"digest": f"sha256:{sha(b'arm')}", "size": 3, "platform": platform(*ARM)}
    both = index_of(files, other, built(files, AMD))
    assert ids(read(given(tmp_path, laid_out(files, named(both))))) == [(ID, (NAME,))]


@either
@pytest.mark.parametrize("said", [True, False])
def test_a_layout_without_our_platform_says_which_it_has(tmp_path: Path, given: Given, said: bool) -> None:
    files: Files = {}
    of = [built(files, ARM, said=said), built(files, ("windows", "amd64"), said=said), attested(files)]
    path = given(tmp_path, laid_out(files, named(index_of(files, *of))))
    assert refused(path) == "it has no image for linux/amd64, only for linux/arm64, windows/amd64"


def test_a_layout_of_nothing_says_so(tmp_path: Path) -> None:
    assert "no image for linux/amd64, nor for any other" in refused(as_archive(tmp_path, laid_out({})))
    many = [{"digest": f"sha256:{sha(b'')}", "size": 0, "platform": platform("linux", f"a{n}")} for n in range(500)]
    said = refused(as_archive(tmp_path, laid_out({}, *many)))
    assert "linux/a19 and 480 others" in said


def test_of_several_variants_the_one_is_taken_that_all_hosts_can_run(tmp_path: Path) -> None:
    files: Files = {}
    newer = built(files, AMD, text="v3", platform={"variant": "v3"})
    both = index_of(files, newer, built(files, AMD))
    assert ids(read(as_archive(tmp_path, laid_out(files, named(both))))) == [(ID, (NAME,))]
    assert len(read(as_archive(tmp_path, laid_out(files, named(newer)))).images) == 1


@either
@pytest.mark.parametrize("tag", ["", "1.2", "latest"])
def test_a_layout_without_a_name_gets_one_or_is_refused(tmp_path: Path, given: Given, tag: str) -> None:
    """buildx without --tag writes none; others write the tag alone."""
    files: Files = {}
    image = built(files, AMD)
    if tag:
        image["annotations"] = {"org.opencontainers.image.ref.name": tag}
    path = given(tmp_path, laid_out(files, image))
    said = refused(path)
    assert "has no name" in said or f"{tag!r} is no name with a tag" in said
    assert "--name NAME:TAG" in said
    found = read(path, "docker.io/house/own:3")
    assert ids(found) == [(ID, ("house/own:3",))]
    assert json.loads(found.manifest)[0]["RepoTags"] == ["house/own:3"]


def test_a_name_may_be_given_to_one_image_alone(tmp_path: Path) -> None:
    files: Files = {}
    both = [named(built(files, AMD)), named(built(files, AMD, text="2"), "house/tool:2")]
    path = as_archive(tmp_path, laid_out(files, *both))
    assert len(read(path).images) == 2
    assert refused(path, "a:1") == "--name is the name of one image, and 2 are in it"
    again = as_archive(tmp_path, laid_out(files, both[0], named(both[0], "house/tool:latest")))
    assert ids(read(again)) == [(ID, (NAME, "house/tool:latest"))]
    assert ids(read(again, "a:1")) == [(ID, ("a:1",))]
    assert len(json.loads(read(again).manifest)) == 1


def test_what_docker_saved_by_its_id_gets_a_name(tmp_path: Path) -> None:
    path = put(tmp_path, packed(saved(names=[])))
    found = read(path, "a:1")
    assert [image.tags for image in found.images] == [("a:1",)]
    before = json.loads(saved(names=[])["manifest.json"])[0]
    assert json.loads(found.manifest) == [{**before, "RepoTags": ["a:1"]}]


@either
def test_a_blob_that_is_missing_or_altered_is_named_by_its_digest(tmp_path: Path, given: Given) -> None:
    files: Files = {}
    layout = laid_out(files, named(index_of(files, built(files, AMD), attested(files))))
    blob = next(name for name in layout if name.endswith(sha(gzip.compress(LAYERS[0], mtime=0))))
    digest = f"sha256:{blob.rpartition('/')[2]}"
    for place in (3, len(layout[blob]) // 2, len(layout[blob]) - 3):  # a flipped byte anywhere in a compressed layer
        altered = bytearray(layout[blob])
        altered[place] ^= 1
        said = refused(given(tmp_path, {**layout, blob: bytes(altered)}))
        assert said == f"the blob {digest} was altered: its bytes have the checksum {sha(bytes(altered))}"
    assert f"the blob {digest} was altered" in refused(given(tmp_path, {**layout, blob: layout[blob][:-9]}))
    path = given(tmp_path, layout)
    if path.is_dir():
        (path / blob).unlink()
    else:
        path = given(tmp_path, {name: data for name, data in layout.items() if name != blob})
    assert refused(path) == f"the blob {digest} is missing"


def test_a_layer_that_was_damaged_before_it_got_its_digest_is_named(tmp_path: Path) -> None:
    files: Files = {}
    damaged = gzip.compress(LAYERS[0], mtime=0)[:-12]
    whole = {"config": described(files, config(LAYERS[0])), "layers": [described(files, damaged)]}
    path = as_archive(tmp_path, laid_out(files, named(described(files, json.dumps(whole).encode()))))
    assert refused(path) == f"layer 1 (sha256:{sha(damaged)}) is damaged: it cannot be unpacked"


def test_zstd_is_refused_before_a_host_is_asked(tmp_path: Path) -> None:
    files: Files = {}
    layer = b"\x28\xb5\x2f\xfd" + b"x" * 100
    whole = {"config": described(files, config(LAYERS[0])), "layers": [described(files, layer)]}
    said = refused(as_archive(tmp_path, laid_out(files, named(described(files, json.dumps(whole).encode())))))
    assert f"layer 1 (sha256:{sha(layer)}) is compressed with zstd, which Docker before 23 cannot unpack" in said
    assert "compressed with zstd: unpack it" in refused(put(tmp_path, layer, "image.tar.zst"))


def test_a_name_at_the_beginning_is_no_compression(tmp_path: Path) -> None:
    files: Files = {"BZh9": b"x"}
    assert ids(read(as_archive(tmp_path, laid_out(files, named(built(files, AMD)))))) == [(ID, (NAME,))]


def test_indexes_that_multiply_are_refused_in_time(tmp_path: Path) -> None:
    """An index that lists the next one 900 times, which does the same, and so on: less than a megabyte."""
    files: Files = {}
    of = built(files, ARM, said=False)
    for _ in range(4):
        of = index_of(files, *[of] * 900)
    began = time.process_time()
    assert "its indexes list more than 10,000 manifests" in refused(as_archive(tmp_path, laid_out(files, named(of))))
    for _ in range(4):
        of = index_of(files, of)
    assert "its indexes lead to each other" in refused(as_archive(tmp_path, laid_out(files, named(of))))
    assert time.process_time() - began < 20


# ---------------------------------------------------------------- directories


def test_a_directory_reaches_hosts_as_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any host is asked, it is read; the file that they get lies there until they have it."""
    (tmp_path / "hosts.yml").write_text(
        "all:\n  hosts:\n    gpu01:\n      hostwright_roles: [base, driver, container]\n"
    )
    files: Files = {}
    layout = as_directory(tmp_path, laid_out(files, index_of(files, built(files, ARM), built(files, AMD))))
    sent: list[dict[str, Any]] = []

    def reach(
        verb: str, goal: Any, _fleet: Any, _members: Any, request: Request, *, files: dict[str, Path], **_: Any
    ) -> int:
        (artifact,) = goal.artifacts.values()
        (file,) = files.values()
        assert hashlib.sha256(file.read_bytes()).hexdigest() == artifact.sha256
        sent.append({"verb": verb, "file": artifact.file, **request.own})
        return 0

    monkeypatch.setattr("hostwright.cli.verbs.changes.reach", reach)
    given = Request("gpu01", inventory=(str(tmp_path / "hosts.yml"),)), str(layout)
    with pytest.raises(InputError, match="has no name: give it one"):
        push(*given)
    with pytest.raises(InputError, match="--name: 'tool' is no name with a tag"):
        push(*given, name="tool")
    assert push(*given, name="docker.io/house/tool:1") == 0
    of = {
        "verb": "images.push",
        "file": "image-house-tool-1.tar",
        "archive": str(layout),
        "images": ["house/tool:1"],
        "registry": "",
    }
    assert sent == [of]


def test_the_same_directory_is_the_same_archive_and_leaves_nothing(tmp_path: Path) -> None:
    files: Files = {}
    layout = as_directory(tmp_path, laid_out(files, named(built(files, AMD))))
    sums = set()
    for number in range(2):
        os.utime(layout / "index.json", (number, number))
        (layout / "blobs/sha256/.unfinished").write_bytes(b"x" * number)
        with archive_of(layout) as file:
            sums.add(hashlib.sha256(file.read_bytes()).hexdigest())
        assert not file.parent.exists()
    assert len(sums) == 1
    with archive_of(file) as same:
        assert same == file


def test_a_directory_that_is_no_layout_or_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path) == "this is no OCI layout: the directory has no index.json"
    files: Files = {}
    layout = as_directory(tmp_path, laid_out(files, named(built(files, AMD))))
    secret = tmp_path / "secret"
    secret.write_text("mine")
    link = layout / "blobs/sha256" / ("0" * 64)
    link.symlink_to(secret)
    assert "is a link: copy the directory with cp -rL" in refused(layout)
    link.unlink()
    os.mkfifo(link)
    assert "is no file" in refused(layout)
    link.unlink()
    link.write_bytes(b"not what its name says")
    assert f"the blob sha256:{'0' * 64} was altered" in refused(layout)
    link.unlink()
    (layout / "index.json").unlink()
    (layout / "index.json").symlink_to(secret)
    assert "Too many levels of symbolic links" in refused(layout)


def test_a_directory_that_has_no_room_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files: Files = {}
    layout = as_directory(tmp_path, laid_out(files, named(built(files, AMD))))

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tarfile.TarFile.addfile", full)
    assert "it cannot be packed: No space left on device (its archive is made in" in refused(layout)
