"""Delivery of an image to a lab host's real Docker, over real SSH and without a registry."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Change, Facts
from hostwright.standard.roles.container.images.facts import IMAGES_PROBE
from hostwright.standard.roles.container.images.loaded import ImagesLoaded, artifact_of
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
#: archives of which Docker 20.10 loads both names; it loads the others as one image
SHOWN_BY_DOCKER = {
    "a directory by its pax path", "a directory by its GNU name", "a directory by its own name",
    "a directory with content", "two pax headers", "a key in another case",
}  # fmt: skip
UNSAFE = "-o DPkg::Options::=--force-unsafe-io"  # without fsync, because the host is temporary
DOCKER = f"DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends {UNSAFE} docker.io"


@pytest.fixture(scope="module")
def opened() -> Iterator[Lab]:
    with own_lab("pushing") as lab:
        fleet.supply(lab, SMALL)
        fleet.up(lab, ["img01"], options=SMALL)
        yield lab


@pytest.fixture
def host(opened: Lab) -> Machine:
    """A host with Docker and nothing else of a stack, without the image."""
    machine = find_machine(opened, "img01")
    on(machine, f"command -v docker >/dev/null || {{ apt-get -q update; {DOCKER}; }}")
    on(machine, f"docker image rm -f {TAG} >/dev/null 2>&1; rm -rf {CACHE}")
    return machine


@pytest.fixture
def door(opened: Lab) -> FrontDoor:
    return FrontDoor(opened)


def id_on(machine: Machine) -> str:
    return on(machine, f"docker image inspect --format '{{{{.Id}}}}' {TAG}").strip()


def test_an_image_is_brought_once_and_known_afterwards(door: FrontDoor, host: Machine) -> None:
    archive = str(images.ensure(images.PYTHON))
    words = ("images.push", "--hosts", "img01", "--archive", archive)
    assert door(*words, "--check").returncode == 3
    first = door.json(*words, status=0)
    assert [(row["result"], row["changed"]) for row in first["hosts"]] == [("changed", True)]
    (change,) = first["hosts"][0]["plan"]["roles"][0]["changes"]
    assert change["want"].startswith(f"loaded from {Path(archive).name}, ")
    (step,) = first["hosts"][0]["roles"][0]["steps"]
    assert f"hostwright: note: Docker loaded {TAG} ({id_on(host)})" in step["output"].splitlines()
    assert on(host, f"docker run --rm {TAG} python3 -c 'print(6 * 7)'").strip() == "42"
    assert on(host, f"find {CACHE} -type f").strip() == ""  # the archive is deleted after the load
    again = door.json(*words, status=0)
    assert [(row["changed"], row["roles"]) for row in again["hosts"]] == [(False, [])]
    assert door(*words, "--check").returncode == 0
    assert not Path(
        host.merged / "var/lib/hostwright/release.json"
    ).exists()  # an image does not count as a release of the host
    found = door.json("images.audit", "--hosts", "img01", status=0)
    (image,) = [image for image in found["images"] if TAG in image["tags"]]
    assert (image["id"], list(image["hosts"])) == (id_on(host), ["img01"])


def loaded(host: Machine, script: str, place: str, data: bytes) -> subprocess.CompletedProcess[str]:
    """Load an archive as the step of a plan does."""
    archive = host.merged / place.lstrip("/")
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(data)
    return exec_in(host, ["sh", "-euc", script])


def has(host: Machine) -> list[str]:
    """Return all images of the host with their names, including images without a name."""
    return on(host, "docker image ls --all --no-trunc --format '{{.Repository}}:{{.Tag}} {{.ID}}' | sort").splitlines()


def test_an_archive_with_another_name_than_it_shows_is_undone_and_leaves_no_image(
    host: Machine, tmp_path: Path
) -> None:
    """Also if the load is killed before the names are compared, and its archive is sent again."""
    path = tmp_path / "tool.tar"
    path.write_bytes(packed(saved()))
    state = ImagesLoaded(artifact_of(path), path.name)
    change = state.plan(
        Facts({**{probe: Answer(0, "") for probe in state.probes()}, IMAGES_PROBE: Answer(0, "free 9999\nend\n")})
    )
    assert isinstance(change, Change)
    script, place = change.steps[0].script, f"{CACHE}/{state.artifact.sha256}/{state.artifact.file}"
    killed = script.replace('cat -- "$work/said"', "kill -9 $$", 1)
    assert killed != script
    on(host, "docker image ls -aq | sort -u | xargs -r docker image rm -f; docker import - other:1 </dev/null")
    for former in ("", f"docker tag other:1 {HIDDEN}"):
        on(host, former or "true")
        before = has(host)
        for of, data in {"as it is": path.read_bytes(), **archives()}.items():
            cut = loaded(host, killed, place, data)
            assert has(host) != before, of
            assert cut.returncode != 0
            done = loaded(host, script, place, data)
            bad = of in SHOWN_BY_DOCKER
            assert (done.returncode != 0) is bad, f"{of}: {done.stdout}"
            assert has(host) == (before if bad else sorted([*before, f"{NAME} {ID}"])), of
            if bad:
                assert (
                    f"Docker loaded several names from the archive; if all of them are meant: --name {NAME},"
                    in done.stdout
                )
            on(host, f"docker image rm {NAME} >/dev/null 2>&1 || true")
    on(host, f"docker image rm {HIDDEN} other:1")


def test_a_name_that_leads_elsewhere_moves_only_if_it_was_given(door: FrontDoor, host: Machine, tmp_path: Path) -> None:
    path = tmp_path / "tool.tar"
    path.write_bytes(packed(saved()))
    on(host, f"docker import - {NAME} </dev/null")
    before = has(host)
    words = ("images.push", "--hosts", "img01", "--archive", str(path))
    refused = door(*words)
    assert refused.returncode == 1
    assert f"if that is meant: --name {NAME}" in " ".join(refused.stdout.split())
    assert has(host) == before
    assert door.json(*words, "--name", NAME, status=0)["hosts"][0]["changed"] is True
    assert f"{NAME} {ID}" in has(host)
    on(host, f"docker image rm {NAME}; docker image prune -f")


def test_an_image_that_was_saved_by_its_id_gets_the_name_that_was_given(
    door: FrontDoor, host: Machine, tmp_path: Path
) -> None:
    path = tmp_path / "tool.tar"
    path.write_bytes(packed(saved(names=[])))
    words = ("images.push", "--hosts", "img01", "--archive", str(path))
    assert "give it one with --name NAME:TAG" in " ".join(door(*words).stdout.split())
    assert ID not in " ".join(has(host))
    assert door.json(*words, "--name", NAME, status=0)["hosts"][0]["changed"] is True
    assert f"{NAME} {ID}" in has(host)
    on(host, f"docker image rm {NAME}")


def test_a_push_that_is_killed_goes_on_where_it_ended(door: FrontDoor, host: Machine) -> None:
    """The controller is killed after a part has arrived; the next push completes it and leaves one image."""
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
    on(host, f"for i in $(seq 1200); do if {found}; then break; fi; sleep 0.1; done")  # at most two minutes
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    assert on(host, f"find {CACHE} -name 'image-*'").count("image-") == 1  # a part, or the whole file on a fast machine
    door.json("images.push", "--hosts", "img01", "--archive", archive, status=0)
    assert id_on(host).startswith("sha256:")
    assert on(host, f"docker image ls -q {TAG} | wc -l").strip() == "1"
    assert on(host, f"find {CACHE} -type f").strip() == ""
