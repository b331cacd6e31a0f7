"""An image brought to a lab host's real Docker, over real SSH and without a registry."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Change, Facts
from hostwright.standard.roles.container.images.archives.contents import read_contents
from hostwright.standard.roles.container.images.loaded import ImagesLoaded
from hostwright.standard.roles.container.images.look import LOOK
from lab import fleet, images
from lab.config import Lab, Machine
from lab.machine import exec_in
from lab.records import find_machine
from tests.lab.conftest import SMALL, FrontDoor, on
from tests.lab.ownlab import own_lab
from tests.places import PROJECT
from tests.unit.roles.container.images.archives import ID, NAME, packed, saved
from tests.unit.roles.container.images.disagreeing import HIDDEN, archives

CACHE = "/var/cache/hostwright/artifacts"
TAG = images.PYTHON.tag
UNSAFE = "-o DPkg::Options::=--force-unsafe-io"  # the host is thrown away: no waiting for its disk
DOCKER = f"DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends {UNSAFE} docker.io"


@pytest.fixture(scope="module")
def opened() -> Iterator[Lab]:
    with own_lab("pushing") as lab:
        fleet.supply(lab, SMALL)
        fleet.up(lab, ["img01"], options=SMALL)
        yield lab


@pytest.fixture
def host(opened: Lab) -> Machine:
    """A host with Docker and nothing else of a stack, and without the image."""
    machine = find_machine(opened, "img01")
    on(machine, f"command -v docker >/dev/null || {{ apt-get -q update; {DOCKER}; }}")
    on(machine, f"docker image rm -f {TAG} >/dev/null 2>&1; rm -rf {CACHE}")
    return machine


@pytest.fixture
def door(opened: Lab) -> FrontDoor:
    return FrontDoor(opened)


def id_on(machine: Machine) -> str:
    return on(machine, f"docker image inspect --format '{{{{.Id}}}}' {TAG}").strip()


def as_layout(archive: Path, folder: Path, *, as_built: bool = False) -> Path:
    """The same image as an OCI layout, its layers compressed: Docker 20.10 takes no such file. ``as_built`` writes it
    as buildx does without a name: an index of two platforms, of which one is not there, and an attestation."""
    import hashlib

    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(data: bytes) -> dict[str, object]:
        digest = hashlib.sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        return {"digest": f"sha256:{digest}", "size": len(data)}

    with tarfile.open(archive) as saved:

        def member(name: str) -> bytes:
            file = saved.extractfile(name)
            assert file is not None
            return file.read()

        (entry,) = json.loads(member("manifest.json"))
        layers = [blob(gzip.compress(member(name), 1)) for name in entry["Layers"]]
        whole = {"schemaVersion": 2, "config": blob(member(entry["Config"])), "layers": layers}
    named = {**blob(json.dumps(whole).encode()), "annotations": {"org.opencontainers.image.ref.name": TAG}}
    if as_built:
        absent = {"digest": f"sha256:{'0' * 64}", "size": 1, "platform": {"os": "linux", "architecture": "arm64"}}
        ours = {**blob(json.dumps(whole).encode()), "platform": {"os": "linux", "architecture": "amd64"}}
        nothing = {"schemaVersion": 2, "config": blob(b"{}"), "layers": []}
        attested = {**blob(json.dumps(nothing).encode()), "platform": {"os": "unknown", "architecture": "unknown"}}
        named = blob(json.dumps({"schemaVersion": 2, "manifests": [absent, ours, attested]}).encode())
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [named]}))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return folder


def as_packed_layout(archive: Path, folder: Path) -> Path:
    """The layout as a gzipped archive."""
    as_layout(archive, folder)
    path = folder.with_suffix(".tar.gz")
    with tarfile.open(path, "w:gz", compresslevel=1) as packed:
        packed.add(folder, ".")
    shutil.rmtree(folder)
    return path


def test_an_image_is_brought_once_and_known_afterwards(door: FrontDoor, host: Machine) -> None:
    archive = str(images.ensure(images.PYTHON))
    words = ("images.push", "--hosts", "img01", "--archive", archive)
    assert door(*words, "--check").returncode == 3
    first = door.json(*words, status=0)
    assert [(row["result"], row["changed"]) for row in first["hosts"]] == [("changed", True)]
    (change,) = first["hosts"][0]["plan"]["roles"][0]["changes"]
    assert id_on(host)[7:19] == change["want"]
    assert on(host, f"docker run --rm {TAG} python3 -c 'print(6 * 7)'").strip() == "42"
    assert on(host, f"find {CACHE} -type f").strip() == ""  # the archive goes once its images are there
    again = door.json(*words, status=0)
    assert [(row["changed"], row["roles"]) for row in again["hosts"]] == [(False, [])]
    assert door(*words, "--check").returncode == 0
    assert not Path(host.merged / "var/lib/hostwright/release.json").exists()  # an image is no release of the host
    found = door.json("images.audit", "--hosts", "img01", status=0)
    (image,) = [image for image in found["images"] if TAG in image["tags"]]
    assert (image["id"], list(image["hosts"])) == (id_on(host), ["img01"])


def test_an_oci_layout_is_the_same_image(door: FrontDoor, host: Machine, tmp_path: Path) -> None:
    archive = images.ensure(images.PYTHON)
    packed = as_packed_layout(archive, tmp_path / "layout")
    ended = door.json("images.push", "--hosts", "img01", "--archive", str(packed), status=0)
    assert ended["hosts"][0]["changed"] is True
    brought = id_on(host)
    again = door.json("images.push", "--hosts", "img01", "--archive", str(archive), status=0)
    assert again["hosts"][0]["changed"] is False
    assert id_on(host) == brought


def test_a_directory_as_builders_write_it_is_the_same_image(door: FrontDoor, host: Machine, tmp_path: Path) -> None:
    """It has no name, two platforms of which one is absent, and an attestation; at first a byte of a layer differs."""
    archive = images.ensure(images.PYTHON)
    layout = as_layout(archive, tmp_path / "layout", as_built=True)
    words = ("images.push", "--hosts", "img01", "--archive", str(layout))
    assert "an image in it has no name: give it one (--name" in " ".join(door(*words).stderr.split())
    layer = max((layout / "blobs/sha256").iterdir(), key=lambda path: path.stat().st_size)
    whole = layer.read_bytes()
    layer.write_bytes(bytes([*whole[:5000], whole[5000] ^ 1]) + whole[5001:])
    altered = " ".join(door(*words, "--name", TAG).stderr.split())
    assert f"the blob sha256:{layer.name} was altered" in altered
    layer.write_bytes(whole)
    assert door.json(*words, "--name", TAG, status=0)["hosts"][0]["changed"] is True
    assert on(host, f"docker run --rm {TAG} uname -m").strip() == "x86_64"
    again = door.json("images.push", "--hosts", "img01", "--archive", str(archive), status=0)
    assert again["hosts"][0]["changed"] is False


def loaded(host: Machine, script: str, place: str, data: bytes) -> subprocess.CompletedProcess[str]:
    """Load an archive as the step of a plan does, whatever was read in it before."""
    archive = host.merged / place.lstrip("/")
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(data)
    return exec_in(host, ["sh", "-euc", script])


def test_an_image_that_was_not_announced_goes_again(door: FrontDoor, host: Machine, tmp_path: Path) -> None:
    """Docker's reader of an archive is another than ours: what Docker says that it loaded counts."""
    whole = tmp_path / "tool.tar"
    whole.write_bytes(packed(saved()))
    state = ImagesLoaded.of(read_contents(whole))
    change = state.plan(Facts({LOOK: Answer(0, "free 90000000\nend\n")}))
    assert isinstance(change, Change)
    script, place = change.steps[0].script, f"{CACHE}/{state.artifact.sha256}/{state.artifact.file}"
    show = "docker image ls --no-trunc --format '{{.Repository}}:{{.Tag}} {{.ID}}' | grep -v '<none>' || true"

    def names() -> set[str]:
        return set(on(host, show).splitlines())

    on(host, f"docker image rm {NAME} {HIDDEN} >/dev/null 2>&1 || true; docker import - other:1 </dev/null")
    shown = set()
    for former in ("", f"docker tag other:1 {HIDDEN}"):
        on(host, former or "true")
        before = names()
        for of, data in archives().items():
            done = loaded(host, script, place, data)
            assert names() == (before if done.returncode else {*before, f"{NAME} {ID}"}), f"{of}: {done.stdout}"
            if HIDDEN in done.stdout:
                shown.add(of)
                assert f"as {HIDDEN} since the load, and images.push found no such name in the archive" in done.stdout
            on(host, f"docker image rm {NAME} >/dev/null 2>&1 || true")
    assert {"a directory by its pax path", "a directory by its GNU name", "a key in another case"} <= shown
    words = ("images.push", "--hosts", "img01", "--archive", str(whole))
    assert door(*words, "--check").returncode == 3  # nothing of such an archive is taken for done
    assert door.json(*words, status=0)["hosts"][0]["changed"] is True
    on(host, f"docker image rm {NAME} {HIDDEN} other:1")


def test_a_push_that_is_killed_goes_on_where_it_ended(door: FrontDoor, host: Machine) -> None:
    """The controller is killed once a part has arrived; the next push completes it, and one image is there."""
    archive = str(images.ensure(images.PYTHON))
    words = ["images.push", "--inventory", str(door.lab.inventory.parent), "--hosts", "img01", "--archive", archive]
    environment = {**os.environ, "HOSTWRIGHT_STATE": str(door.lab.state / "controller")}
    run = subprocess.Popen(
        [str(Path(sys.executable).with_name("invoke")), *words],
        cwd=PROJECT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    found = f"[ -n \"$(find {CACHE} -name '*.part' -size +8M 2>/dev/null)\" ]"
    on(host, f"for i in $(seq 1200); do if {found}; then break; fi; sleep 0.1; done")  # two minutes at most
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    assert on(host, f"find {CACHE} -name 'image-*'").count("image-") == 1  # a part, or the whole where it came so fast
    door.json("images.push", "--hosts", "img01", "--archive", archive, status=0)
    assert id_on(host).startswith("sha256:")
    assert on(host, f"docker image ls -q {TAG} | wc -l").strip() == "1"
    assert on(host, f"find {CACHE} -type f").strip() == ""
