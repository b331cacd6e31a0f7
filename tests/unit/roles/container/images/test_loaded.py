"""What is planned for the images of an archive, and what the host's shell does with it. Docker is a stand-in."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.model import Answer, Change, Facts, Refusal
from hostwright.plan.planning import make_plan
from hostwright.stack.stack import Stack
from hostwright.standard.roles.container.images.archives.contents import read_contents
from hostwright.standard.roles.container.images.loaded import ImagesLoaded
from hostwright.standard.roles.container.images.look import CONTAINERD, LOOK, read_look
from hostwright.standard.roles.container.images.verbs import found_images, is_old, lines
from tests.unit.roles.container.images.archives import ID, NAME, layout, packed, put, saved

OTHER = "sha256:" + "b" * 64
FREE = "free 90000000"
#: Docker as far as load.sh and look.sh know it: names lead to IDs in the file $names; ``load`` brings the pairs
#: (NAME ID) of $loads, and says so unless they begin with "silently"; with "failing" it then fails
DOCKER = r"""#!/bin/sh
echo "docker $*" >>"$log"
case "$1 $2" in
    "image ls") cat "$names"; echo "<none>:<none> sha256:0" ;;
    "load -q")
        if [ "$3" = -i ]; then cp "$4" "$received"; else cat >"$received"; fi
        set -- $loads
        case ${1:-} in silently | failing) how=$1; shift ;; esac
        while [ $# -gt 0 ]; do
            sed -i "s|^$1 .*||; /^$/d" "$names"
            echo "$1 $2" >>"$names"
            [ "${how:-}" = silently ] || echo "Loaded image: $1"
            shift 2
        done
        [ "${how:-}" != failing ] ;;
    "image rm") sed -i "s|^$4 .*||; /^$/d" "$names" ;;
    tag\ *) sed -i "s|^$3 .*||; /^$/d" "$names"; echo "$3 $2" >>"$names" ;;
esac
"""


def image(tags: list[str], id_: str = ID, created: str = "2026-01-02T03:04:05Z") -> str:
    return "image " + json.dumps({"id": id_, "created": created, "size": 5_000_000, "tags": tags, "digests": []})


def container(name: str, state: str = "running", id_: str = ID) -> str:
    return "container " + json.dumps({"name": f"/{name}", "image": id_, "state": state, "created": "2026-01-03"})


def facts(*rows: str) -> Facts:
    return Facts({LOOK: Answer(0, "\n".join([*rows, "end"]))})


@pytest.fixture
def state(tmp_path: Path) -> ImagesLoaded:
    return ImagesLoaded.of(read_contents(put(tmp_path, packed(saved()))))


# ---------------------------------------------------------------- the plan


def test_a_host_without_the_image_gets_the_archive(state: ImagesLoaded) -> None:
    change = state.plan(facts(FREE))
    assert isinstance(change, Change)
    assert (change.what, change.have, change.want) == (f"image {NAME}", "absent", ID[7:19])
    assert change.artifacts == (state.artifact.name,)
    assert f"/var/cache/hostwright/artifacts/{state.artifact.sha256}/image-house-tool-1.2.tar" in change.steps[0].script
    assert change.disturbs == change.final == ""


def test_a_host_with_the_image_is_left_as_it_is(state: ImagesLoaded) -> None:
    assert state.plan(facts(FREE, image(["a:1", NAME]), container("work"))) is None


def test_a_host_that_has_it_without_the_name_gets_the_name_alone(state: ImagesLoaded) -> None:
    change = state.plan(facts(FREE, image(["other:1"])))
    assert isinstance(change, Change)
    assert (change.artifacts, [step.script for step in change.steps]) == ((), [f"docker tag {ID} {NAME}"])


def test_a_name_that_leads_to_another_image_moves_and_the_plan_says_so(state: ImagesLoaded) -> None:
    change = state.plan(facts(FREE, image([NAME], OTHER)))
    assert isinstance(change, Change)
    assert (change.have, len(change.warnings)) == ("b" * 12, 1)
    assert f"the name {NAME} leads to the image bbbbbbbbbbbb now" in change.warnings[0]


@pytest.mark.parametrize(
    "rows, rule, sentence",
    [
        (["docker absent"], "images-docker", "there is no Docker on this host"),
        (["docker silent"], "images-docker", "Docker does not answer"),
        (["store containerd", FREE], "images-docker", CONTAINERD),
        (["free 1"], "images-room", "make room"),
        (["image {", FREE], "images-docker", "cannot be understood"),
        (['image {"id": 7}'], "images-docker", "cannot be understood"),
        (["free many"], "images-docker", "cannot be understood"),
    ],
)
def test_a_host_that_cannot_take_it_is_refused(state: ImagesLoaded, rows: list[str], rule: str, sentence: str) -> None:
    planned = state.plan(facts(*rows))
    assert isinstance(planned, Refusal)
    assert planned.rule == rule
    assert sentence in planned.sentence


def test_an_answer_that_was_cut_is_no_answer(state: ImagesLoaded) -> None:
    for answer in (Answer(0, image([NAME])), Answer(0, ""), Answer(0, f"{image([NAME])}\nend", truncated=True)):
        assert isinstance(state.plan(Facts({LOOK: answer})), Refusal)


def test_it_is_brought_to_a_host_that_the_stack_does_not_fit(state: ImagesLoaded) -> None:
    stack = Stack(name="house", distributions={"debian": ("12",)}, artifacts={})
    desired = Desired("gpu01", stack, (DesiredRole("container", (), (state,)),), apart=True)
    asked = Facts({**{probe: Answer(0, "") for probe in desired.probes()}, **facts(FREE)})
    assert [role.role for role in make_plan(desired, asked).roles] == ["container"]
    assert "what works: debian 12" in make_plan(replace(desired, apart=False), asked).refusals[0]


# ---------------------------------------------------------------- the host's shell


class Host:
    """A folder in which the step runs, with a stand-in for Docker."""

    def __init__(self, folder: Path, state: ImagesLoaded, data: bytes):
        self.folder = folder / "host"
        self.folder.mkdir()
        self.names, self.received, self.log = (self.folder / name for name in ("names", "received", "log"))
        self.names.write_text("")
        (self.folder / "docker").write_text(DOCKER)
        (self.folder / "docker").chmod(0o755)
        self.archive = self.folder / "cache" / str(state.artifact.sha256) / state.artifact.file
        self.archive.parent.mkdir(parents=True)
        self.archive.write_bytes(data)
        change = state.plan(facts(FREE))
        assert isinstance(change, Change)
        self.script = change.steps[0].script.replace("/var/cache/hostwright/artifacts", str(self.folder / "cache"))

    def run(self, loads: str) -> subprocess.CompletedProcess[str]:
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        names = {"names": self.names, "received": self.received, "log": self.log, "TMPDIR": temporary}
        environment = {**os.environ, **{key: str(path) for key, path in names.items()}, "loads": loads}
        environment["PATH"] = f"{self.folder}:{environment['PATH']}"
        done = subprocess.run(
            ["/bin/sh", "-eu", "-c", self.script], env=environment, capture_output=True, text=True, check=False
        )
        assert list(temporary.iterdir()) == []
        return done

    @property
    def tags(self) -> dict[str, str]:
        """Where names lead."""
        return dict(line.split() for line in self.names.read_text().splitlines())


def test_the_archive_is_loaded_whole_and_goes_afterwards(tmp_path: Path, state: ImagesLoaded) -> None:
    data = packed(saved())
    host = Host(tmp_path, state, data)
    assert host.run(f"{NAME} {ID}").returncode == 0
    assert (host.received.read_bytes(), host.tags) == (data, {NAME: ID})
    assert not host.archive.parent.exists()


@pytest.mark.parametrize("press", [False, True])
def test_an_oci_layout_is_loaded_with_its_manifest(tmp_path: Path, press: bool) -> None:
    import gzip

    data = packed(layout())
    data = gzip.compress(data) if press else data
    state = ImagesLoaded.of(read_contents(put(tmp_path, data)))
    host = Host(tmp_path, state, data)
    assert host.run(f"{NAME} {ID}").returncode == 0
    received = put(tmp_path, host.received.read_bytes(), "received.tar")
    loaded = read_contents(received)  # as Docker reads it: by manifest.json
    assert loaded.manifest == ""
    assert loaded.images == state.images


def test_an_image_that_was_saved_by_its_id_is_loaded_with_the_name_that_was_given(tmp_path: Path) -> None:
    data = packed(saved(names=[]))
    state = ImagesLoaded.of(read_contents(put(tmp_path, data), name=NAME))
    host = Host(tmp_path, state, data)
    assert host.run(f"{NAME} {ID}").returncode == 0
    with tarfile.open(host.received) as tar:
        tar.extractall(tmp_path / "docker", filter="data")  # as Docker unpacks it: what comes later stays
    (entry,) = json.loads((tmp_path / "docker/manifest.json").read_text())
    assert entry["RepoTags"] == [NAME]


FORMER, HIDDEN = "sha256:" + "c" * 64, "tensorflow/tensorflow:2.9.0-gpu-jupyter"
BEFORE = {NAME: FORMER, HIDDEN: FORMER, "other:1": FORMER}


@pytest.mark.parametrize("before", [{}, BEFORE])
@pytest.mark.parametrize(
    "loads, sentence",
    [
        (f"{NAME} {OTHER}", f"Docker has {OTHER} as {NAME} after the archive, which holds {ID}"),
        (f"{NAME} {ID} {HIDDEN} {OTHER}", f"Docker has {OTHER} as {HIDDEN} since the load, and images.push found no"),
        (f"{HIDDEN} {ID}", f"Docker has {ID} as {HIDDEN} since the load, and images.push found no"),
        (f"silently {NAME} {ID} {HIDDEN} {OTHER}", f"Docker has {OTHER} as {HIDDEN} since the load"),
        (f"failing {HIDDEN} {OTHER}", f"Docker has {OTHER} as {HIDDEN} since the load"),
        (f"failing {NAME} {ID}", ""),
        ("", f"as {NAME} after the archive"),
    ],
)
def test_what_docker_loaded_counts_and_other_images_than_announced_undo_it_all(
    tmp_path: Path, state: ImagesLoaded, before: dict[str, str], loads: str, sentence: str
) -> None:
    host = Host(tmp_path, state, packed(saved()))
    host.names.write_text("".join(f"{name} {id_}\n" for name, id_ in before.items()))
    done = host.run(loads)
    assert done.returncode == 1
    assert sentence in done.stdout
    assert (host.tags, host.archive.exists()) == (before, True)


def test_a_name_that_somebody_gives_during_a_load_stays(tmp_path: Path, state: ImagesLoaded) -> None:
    """Docker says what it loaded; a build of somebody's is not it."""
    host = Host(tmp_path, state, packed(saved()))
    stand_in = host.folder / "docker"
    stand_in.write_text(DOCKER.replace("set -- $loads", f'echo "theirs:1 {OTHER}" >>"$names"; set -- $loads'))
    assert host.run(f"{NAME} {ID}").returncode == 0
    assert host.tags == {NAME: ID, "theirs:1": OTHER}


def test_a_machine_without_docker_says_so(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path)}
    done = subprocess.run(["/bin/sh", "-c", LOOK.script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "docker absent\nend\n"


# ---------------------------------------------------------------- the audit

NOW = datetime(2026, 4, 12, tzinfo=UTC)


def test_an_image_on_many_hosts_is_one_entry_with_its_containers() -> None:
    same = read_look(facts(FREE, image([NAME]), container("work")))
    bare = read_look(facts(FREE, image([NAME, "also:1"]), image(["new:1"], OTHER, "2026-04-01T00:00:00Z")))
    images = found_images({"gpu03": bare, "gpu01": same, "gpu02": same}, NOW)
    assert [(found.id, found.days, is_old(found, 90)) for found in images] == [(ID, 99, True), (OTHER, 11, False)]
    assert images[0].hosts == {"gpu01": ("work (running)",), "gpu02": ("work (running)",), "gpu03": ()}
    assert list(lines(images, 90)) == [
        f"{ID[7:19]}  also:1, {NAME}  5 MB, 99 days old, older than 90 days",
        "    gpu01, gpu02: work (running)",
        "    gpu03: no container",
        f"{'b' * 12}  new:1  5 MB, 11 days old",
        "    gpu03: no container",
        "1 image older than 90 days",
    ]


@pytest.mark.parametrize("created", ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "", "soon"])
def test_an_image_without_a_date_is_neither_old_nor_new(created: str) -> None:
    (found,) = found_images({"gpu01": read_look(facts(image([], ID, created)))}, NOW)
    assert (found.days, is_old(found, 0), found.tags) == (None, False, ())
    assert any("without a date" in line for line in lines([found], 0))


def test_a_host_that_has_nothing() -> None:
    assert list(lines(found_images({"gpu01": read_look(facts(FREE))}, NOW), 90)) == ["no images"]


def test_equal_archives_are_equal_states(tmp_path: Path, state: ImagesLoaded) -> None:
    again: Any = ImagesLoaded.of(read_contents(put(tmp_path, packed(saved()), "again.tar")))
    assert again == state
    assert replace(again, packed=True) != state
