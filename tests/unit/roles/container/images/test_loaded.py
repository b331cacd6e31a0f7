"""Plans for an archive of images, and the step's script in a real shell with a stand-in for Docker."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.model import Answer, Change, Facts, Refusal
from hostwright.plan.planning import make_plan
from hostwright.stack.stack import Stack
from hostwright.standard.roles.container.images.facts import CONTAINERD, IMAGES_PROBE, read_images
from hostwright.standard.roles.container.images.loaded import ImagesLoaded, LoadedImage, artifact_of
from hostwright.standard.roles.container.images.pushing import push
from hostwright.standard.roles.container.images.verbs import found_images, is_old, lines

NAME, HIDDEN = "house/tool:1.2", "tensorflow/tensorflow:2.9.0-gpu-jupyter"
ID, OTHER, FORMER = (f"sha256:{letter * 64}" for letter in "abc")
FREE = "free 90000000"
BYTES = b"an archive that only Docker reads"
#: Stand-in for Docker in load.sh: the file $has has a line "NAME ID" for each name, and one with <none> for an image
#: without a name. ``load`` adds the pairs (NAME ID) in $loads, and reports them unless $loads begins with "silently".
#: "failing" makes it fail afterwards, "killing" makes it kill the calling shell.
DOCKER = r"""#!/bin/sh
gone() { sed -i "s|^$1 .*||; /^$/d" "$has"; }
case "$1 $2" in
    "image ls") cat "$has" ;;
    "image inspect") case $5 in $foreign) echo linux/arm64 ;; *) echo linux/amd64 ;; esac ;;
    "version --format") echo linux/amd64 ;;
    "load -q")
        set -- $loads
        case ${1:-} in silently | failing | killing) how=$1; shift ;; esac
        while [ $# -gt 0 ]; do
            case $1 in
                "<none>") [ "${how:-}" = silently ] || echo "Loaded image ID: $2" ;;
                *) gone "$1"; [ "${how:-}" = silently ] || echo "Loaded image: $1" ;;
            esac
            echo "$1 $2" | sed 's/^<none> /<none>:<none> /' >>"$has"
            shift 2
        done
        [ "${how:-}" != killing ] || kill -9 "$PPID"
        if [ "${how:-}" = failing ]; then echo "Error: unexpected EOF"; exit 1; fi ;;
    "image rm")
        case $3 in
            sha256:*) sed -i "/^<none>:<none> $3\$/d" "$has" ;;
            *) gone "$5" ;;
        esac ;;
    tag\ *) gone "$3"; echo "$3 $2" >>"$has" ;;
esac
"""


def image(tags: list[str], id_: str = ID, created: str = "2026-01-02T03:04:05Z") -> str:
    return "image " + json.dumps({"id": id_, "created": created, "size": 5_000_000, "tags": tags, "digests": []})


def container(name: str, state: str = "running", id_: str = ID) -> str:
    return "container " + json.dumps({"name": f"/{name}", "image": id_, "state": state, "created": "2026-01-03"})


def look(*rows: str) -> Facts:
    return Facts({IMAGES_PROBE: Answer(0, "\n".join([*rows, "end"]))})


@pytest.fixture
def state(tmp_path: Path) -> ImagesLoaded:
    path = tmp_path / "tool.tar"
    path.write_bytes(BYTES)
    return ImagesLoaded(artifact_of(path), path.name)


def facts(state: ImagesLoaded, *rows: str, record: str = "") -> Facts:
    recorded = next(probe for probe in state.probes() if probe != IMAGES_PROBE)
    return Facts({**look(*rows), recorded: Answer(0, record)})


# ---------------------------------------------------------------- the plan


def test_the_plan_names_the_archive_and_says_that_docker_reports_the_images(state: ImagesLoaded) -> None:
    change = state.plan(facts(state, FREE))
    assert isinstance(change, Change)
    assert (change.what, change.have) == ("images of tool.tar", "absent")
    sha256 = str(state.artifact.sha256)
    of = f"tool.tar, {len(BYTES)} B, sha256:{sha256[:12]}"
    assert change.want == f"loaded from {of}; the host's Docker reports the images"
    assert change.artifacts == (state.artifact.name,)
    assert f"/var/cache/hostwright/artifacts/{sha256}/image-tool.tar" in change.steps[0].script
    assert change.disturbs == ""


@pytest.mark.parametrize(
    ("rows", "record", "there"),
    [
        ([(NAME, ID)], f"{ID} {NAME}\n", True),
        ([(NAME, ID), ("a:1", ID)], f"{ID} {NAME}\n{ID} a:1\n", True),
        ([(NAME, ID)], "", False),  # loaded from elsewhere
        ([(NAME, OTHER)], f"{ID} {NAME}\n", False),
        ([], f"{ID} {NAME}\n", False),
        ([(NAME, ID)], f"{ID} {NAME}\n{ID} a:1\n", False),
        ([("--all", "x")], "x --all\n", False),  # not Docker's output
        ([(NAME, ID)], "rubbish\n", False),
    ],
)
def test_an_archive_is_loaded_once_and_again_where_its_names_lead_elsewhere(
    state: ImagesLoaded, rows: list[tuple[str, str]], record: str, there: bool
) -> None:
    of_host = facts(state, FREE, *(image([name], id_) for name, id_ in rows), record=record)
    assert (state.plan(of_host) is None) is there
    assert bool(state.images(of_host)) is there
    if there:
        assert state.images(of_host)[0] == LoadedImage(ID, NAME)


def test_a_load_that_was_killed_is_repeated(state: ImagesLoaded) -> None:
    cut = f"cut {state.artifact.sha256}"
    of_host = facts(state, FREE, cut, image([NAME]), record=f"{ID} {NAME}\n")
    assert isinstance(state.plan(of_host), Change)


def test_names_that_were_given_are_compared_and_the_plan_says_where_they_lead(state: ImagesLoaded) -> None:
    named = replace(state, names=(NAME,))
    change = named.plan(facts(named, FREE, image([NAME], OTHER)))
    assert isinstance(change, Change)
    assert (change.what, change.have, len(change.warnings)) == (f"image {NAME}", "b" * 12, 1)
    assert f"the name {NAME} points to the image bbbbbbbbbbbb now" in change.warnings[0]
    loaded = facts(named, FREE, image([NAME]), record=f"{ID} {NAME}\n")
    assert named.plan(loaded) is None
    assert isinstance(replace(named, names=("a:1",)).plan(loaded), Change)


@pytest.mark.parametrize(
    "rows, rule, sentence",
    [
        (["docker absent"], "images-docker", "this host has no Docker"),
        (["docker silent"], "images-docker", "Docker does not respond"),
        (["store containerd", FREE], "images-docker", CONTAINERD),
        (["free 0"], "images-room", "free space with"),
        (["image {", FREE], "images-docker", "output on this host is invalid"),
        (['image {"id": 7}'], "images-docker", "output on this host is invalid"),
        (["free many"], "images-docker", "output on this host is invalid"),
    ],
)
def test_a_host_that_cannot_take_it_is_refused(state: ImagesLoaded, rows: list[str], rule: str, sentence: str) -> None:
    planned = state.plan(facts(state, *rows))
    assert isinstance(planned, Refusal)
    assert planned.rule == rule
    assert sentence in planned.sentence


def test_an_answer_that_was_cut_is_no_answer(state: ImagesLoaded) -> None:
    for answer in (Answer(0, image([NAME])), Answer(0, ""), Answer(0, f"{image([NAME])}\nend", truncated=True)):
        assert isinstance(state.plan(Facts({**facts(state), IMAGES_PROBE: answer})), Refusal)


def test_it_is_brought_to_a_host_that_the_stack_does_not_fit(state: ImagesLoaded) -> None:
    stack = Stack(name="house", distributions={"debian": ("12",)}, artifacts={})
    desired = Desired("gpu01", stack, (DesiredRole("container", (), (state,)),), apart=True)
    asked = Facts({**{probe: Answer(0, "") for probe in desired.probes()}, **facts(state, FREE)})
    assert [role.role for role in make_plan(desired, asked).roles] == ["container"]
    assert "what works: debian 12" in make_plan(replace(desired, apart=False), asked).refusals[0]


def test_what_cannot_be_an_archive_or_a_name_is_refused_before_a_host_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="is a directory, but `docker load` needs an archive file"):
        artifact_of(tmp_path)
    with pytest.raises(InputError, match="cannot be read: No such file"):
        artifact_of(tmp_path / "gone.tar")
    given = Request("gpu01")
    for name in ("tool", "house/Tool:1", f"house/tool:1,house/tool@{ID}", ","):
        with pytest.raises(InputError, match=r"^--name: .* is not a valid image name: "):
            push(given, "tool.tar", name=name)
    with pytest.raises(InputError, match="missing; give an archive"):
        push(given, "")


# ---------------------------------------------------------------- the host's shell


class Host:
    """Directory in which the step runs, with a stand-in for Docker."""

    def __init__(self, folder: Path, state: ImagesLoaded):
        self.folder = folder / "host"
        self.folder.mkdir()
        self.names = self.folder / "names"
        self.names.write_text("")
        (self.folder / "docker").write_text(DOCKER)
        (self.folder / "docker").chmod(0o755)
        self.archive = self.folder / "cache" / str(state.artifact.sha256) / state.artifact.file
        self.archive.parent.mkdir(parents=True)
        self.archive.write_bytes(BYTES)
        self.record = self.folder / "images" / str(state.artifact.sha256)
        self.before = self.record.with_name(f"{self.record.name}.before")
        self.script = self.of(state)

    def of(self, state: ImagesLoaded) -> str:
        """Return the step that loads this state's archive in this directory."""
        change = state.plan(facts(state, FREE))
        assert isinstance(change, Change)
        script = change.steps[0].script.replace("/var/cache/hostwright/artifacts", str(self.folder / "cache"))
        return script.replace("/var/lib/hostwright/images", str(self.folder / "images"))

    def run(self, loads: str, names: tuple[str, ...] = (), foreign: str = "-") -> subprocess.CompletedProcess[str]:
        temporary = self.folder / "tmp"
        shutil.rmtree(temporary, ignore_errors=True)  # left by a killed run
        temporary.mkdir()
        environment = {**os.environ, "has": str(self.names), "TMPDIR": str(temporary), "loads": loads}
        environment |= {"PATH": f"{self.folder}:{environment['PATH']}", "foreign": foreign}
        script = self.script.replace("names=''", f"names='{' '.join(names)}'", 1)
        assert not names or script != self.script
        done = subprocess.run(
            ["/bin/sh", "-eu", "-c", script], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode < 0 or list(temporary.iterdir()) == []
        return done

    @property
    def tags(self) -> list[str]:
        """Return Docker's names with their IDs, and images without a name."""
        return sorted(self.names.read_text().splitlines())


@pytest.fixture
def host(tmp_path: Path, state: ImagesLoaded) -> Host:
    return Host(tmp_path, state)


def test_the_archive_is_loaded_and_recorded_and_goes_afterwards(host: Host) -> None:
    done = host.run(f"{NAME} {ID}")
    assert done.returncode == 0
    assert f"hostwright: note: Docker loaded {NAME} ({ID})" in done.stdout.splitlines()
    assert (host.tags, host.record.read_text()) == ([f"{NAME} {ID}"], f"{ID} {NAME}\n")
    assert not host.archive.parent.exists()
    assert not host.before.exists()


@pytest.mark.parametrize(
    ("names", "loads", "after"),
    [
        ((NAME,), f"{NAME} {ID}", [f"{NAME} {ID}"]),
        ((NAME,), f"<none> {ID}", [f"<none>:<none> {ID}", f"{NAME} {ID}"]),  # the stand-in keeps both lines
        ((NAME,), f"{HIDDEN} {ID}", [f"{NAME} {ID}"]),
        ((NAME,), f"{NAME} {ID} {HIDDEN} {ID}", [f"{NAME} {ID}"]),
        ((NAME, "a:1"), f"{NAME} {ID} a:1 {OTHER}", [f"a:1 {OTHER}", f"{NAME} {ID}"]),
    ],
)
@pytest.mark.parametrize("former", ["", NAME, HIDDEN])
def test_names_that_were_given_are_those_that_the_host_has(
    host: Host, names: tuple[str, ...], loads: str, after: list[str], former: str
) -> None:
    """The image's name in the archive does not matter; its other names stay unchanged."""
    host.names.write_text(f"{former} {FORMER}\n" if former else "")
    done = host.run(loads, names)
    assert done.returncode == 0, done.stdout
    assert host.tags == sorted([*after, *([f"{HIDDEN} {FORMER}"] if former == HIDDEN else [])])
    assert len(host.record.read_text().splitlines()) == len(names)


BEFORE = [f"<none>:<none> {FORMER}", f"{NAME} {FORMER}", f"other:1 {FORMER}", f"{HIDDEN} {FORMER}"]


@pytest.mark.parametrize("before", [[], BEFORE], ids=["empty", "there"])
@pytest.mark.parametrize(
    ("names", "loads", "sentence"),
    [
        (
            (),
            f"{NAME} {ID} {HIDDEN} {OTHER}",
            f"several names from the archive; if all of them are meant: --name {NAME},",
        ),
        ((), f"<none> {ID}", "the archive gives its image no name"),
        ((), f"silently {NAME} {ID} {HIDDEN} {OTHER}", "Docker does not say which images it loaded"),
        ((), f"failing {HIDDEN} {OTHER}", "Docker cannot load this archive: Error: unexpected EOF."),
        ((), "", "Docker does not say which images it loaded"),
        ((), f"{NAME} {OTHER} foreign", "an image in the archive is for linux/arm64, and this host is linux/amd64"),
        (
            (NAME,),
            f"{NAME} {ID} {HIDDEN} {OTHER}",
            f"--name {NAME} is the name of one image, and Docker loaded several",
        ),
        ((NAME,), f"<none> {ID} <none> {OTHER}", f"--name {NAME} is the name of one image, and Docker loaded several"),
        (
            (NAME, "a:1"),
            f"{NAME} {ID} {HIDDEN} {OTHER}",
            f"Docker loaded {NAME},{HIDDEN} from the archive, and --name has",
        ),
        ((NAME, "a:1"), f"{NAME} {ID}", f"Docker loaded {NAME} from the archive, and --name has a:1,{NAME}"),
    ],
)
def test_other_names_than_were_agreed_to_undo_the_load_and_leave_no_image(
    host: Host, before: list[str], names: tuple[str, ...], loads: str, sentence: str
) -> None:
    host.names.write_text("".join(f"{line}\n" for line in before))
    done = host.run(loads.removesuffix(" foreign"), names, foreign=OTHER if loads.endswith(" foreign") else "-")
    assert done.returncode == 1
    assert sentence in done.stdout
    assert done.stdout.endswith(": the load was undone\n")
    assert (host.tags, host.archive.exists()) == (sorted(before), True)
    assert not host.record.exists()
    assert not host.before.exists()


def test_a_name_that_leads_elsewhere_is_moved_only_if_it_was_given(host: Host) -> None:
    host.names.write_text(f"{NAME} {FORMER}\n")
    done = host.run(f"{NAME} {ID}")
    assert done.returncode == 1
    assert (
        f"moves {NAME} away from the image {FORMER}; if that is meant: --name {NAME}: the load was undone"
        in done.stdout
    )
    assert host.tags == [f"{NAME} {FORMER}"]
    assert host.run(f"{NAME} {ID}", (NAME,)).returncode == 0
    assert host.tags == [f"{NAME} {ID}"]


def test_a_name_that_somebody_gives_during_a_load_stays(host: Host) -> None:
    """The result comes from Docker's load output, so that a concurrent build is not part of it."""
    stand_in = host.folder / "docker"
    stand_in.write_text(DOCKER.replace("set -- $loads", f'echo "theirs:1 {OTHER}" >>"$has"; set -- $loads'))
    assert host.run(f"{NAME} {ID} {HIDDEN} {ID}").returncode == 1
    assert host.tags == [f"theirs:1 {OTHER}"]
    assert host.run(f"{NAME} {ID}").returncode == 0
    assert f"{NAME} {ID}" in host.tags


@pytest.mark.parametrize("former", ["", FORMER])
def test_a_load_that_was_killed_before_its_names_were_compared_is_judged_by_the_next(host: Host, former: str) -> None:
    """The comparison uses the state before the killed load, so that a name moved by it counts as moved."""
    host.names.write_text(f"{NAME} {former}\n" if former else "")
    assert host.run(f"killing {NAME} {ID} {HIDDEN} {OTHER}").returncode == -9
    assert len(host.tags) == 2
    assert host.before.read_text() == (f"{NAME} {former}\n" if former else "")
    asked = IMAGES_PROBE.script.replace("/var/lib/hostwright/images", str(host.folder / "images"))
    stand_in = 'case $1 in info) echo "/ x" ;; esac\n'
    (host.folder / "bin").mkdir()
    (host.folder / "bin/docker").write_text(f"#!/bin/sh\n{stand_in}")
    (host.folder / "bin/docker").chmod(0o755)
    path = {"PATH": f"{host.folder}/bin:/usr/bin:/bin"}
    shown = subprocess.run(["/bin/sh", "-c", asked], env=path, capture_output=True, text=True, check=True)
    assert read_images(Facts({IMAGES_PROBE: Answer(0, shown.stdout)})).cut == (host.record.name,)
    done = host.run(f"{NAME} {ID} {HIDDEN} {OTHER}")
    assert (done.returncode, host.tags) == (1, [f"{NAME} {former}"] if former else [])
    assert not host.before.exists()


def test_a_load_that_is_ended_undoes_itself(host: Host) -> None:
    """By a signal that can be caught, such as systemd's at shutdown."""
    stand_in = host.folder / "docker"
    stand_in.write_text(DOCKER.replace("kill -9", "kill -TERM"))
    assert host.run(f"killing {NAME} {ID}").returncode == 143
    assert (host.tags, host.before.exists()) == ([], False)


def test_a_machine_without_docker_says_so(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path)}
    done = subprocess.run(
        ["/bin/sh", "-c", IMAGES_PROBE.script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "docker absent\nend\n"


# ---------------------------------------------------------------- the audit

NOW = datetime(2026, 4, 12, tzinfo=UTC)


def test_an_image_on_many_hosts_is_one_entry_with_its_containers() -> None:
    same = read_images(look(FREE, image([NAME]), container("work")))
    bare = read_images(look(FREE, image([NAME, "also:1"]), image(["new:1"], OTHER, "2026-04-01T00:00:00Z")))
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
    (found,) = found_images({"gpu01": read_images(look(image([], ID, created)))}, NOW)
    assert (found.days, is_old(found, 0), found.tags) == (None, False, ())
    assert any("without a date" in line for line in lines([found], 0))


def test_a_host_that_has_nothing() -> None:
    assert list(lines(found_images({"gpu01": read_images(look(FREE))}, NOW), 90)) == ["no images"]
