"""Removed layers: the order, the remaining record, and Hostwright's own files on the host."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hostwright.apply.host import departure
from hostwright.apply.host.hostrecords import HostRecords
from hostwright.apply.host.outcome import Outcome
from hostwright.apply.rollout import removal
from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.rollout import Results
from hostwright.apply.run import RunResults
from hostwright.cli.tasks.change import remove
from hostwright.common.errors import HostError, Refused, Unreachable
from hostwright.common.quoting import sh
from hostwright.common.request import Request
from hostwright.fleet import Targets
from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.host import release
from hostwright.plan.host.newrelease import reduced
from hostwright.plan.model import Answer, Facts, Plan, Resource
from hostwright.plan.planning import PREFLIGHT, make_plan, removal_of
from hostwright.resources import (
    AptSource,
    ArchiveUnpacked,
    Debs,
    DebsGone,
    Disturbing,
    File,
    Part,
    Running,
    Service,
    SourcesDisabled,
    SystemUser,
    VenvPackage,
    When,
)  # fmt: skip
from hostwright.stack.stack import Artifact
from hostwright.transport import Output
from hostwright.transport.root.rootshell import RootShell
from tests.places import INVENTORY
from tests.unit.plan.test_planning import LAYERS, OS_RELEASE, Named, facts
from tests.unit.resources.removal.test_removal_packages import Deb, World
from tests.unit.support.mounts import in_namespace
from tests.unit.support.stacks import KINDS, load_stack


def test_a_removal_goes_backwards_each_role_before_those_that_it_needs():
    gone = removal_of(LAYERS)
    assert gone.removes
    assert [(role.name, role.needs) for role in gone.roles] == [
        ("cudnn", ()),
        ("cuda", ("cudnn",)),
        ("base", ("cuda", "cudnn")),
    ]


def test_a_roles_states_go_backwards_and_equal_ones_go_once():
    states = (Named("a"), Named("b"), Named("a"))
    gone = removal_of(Desired("gpu01", LAYERS.stack, (DesiredRole("r", (), states),)))
    assert [role.resources for role in gone.roles] == [(Named("no-a"), Named("no-b"))]


def test_what_an_upgrade_left_beside_goes_as_well():
    before = Desired("gpu01", LAYERS.stack, (DesiredRole("cuda", (), (Named("11.1"), Named("cuda"))),))
    gone = {role.name: role.resources for role in removal_of(LAYERS, [before]).roles}
    assert gone == {
        "cudnn": (Named("no-cudnn"),),
        "cuda": (Named("no-cuda"), Named("no-11.1")),
        "base": (Named("no-base"),),
    }


SHARED: tuple[Resource, ...] = (
    Debs(("gcc",)),
    Disturbing(Debs(("make",)), "ends jobs", Running("jobs.service")),
    When(Running("jobs.service"), File("/etc/shared.conf", "")),
    SystemUser("shared"),
    Service("shared.service"),
    ArchiveUnpacked(
        "python3.11", "3.11", Artifact(name="python", file="python.tar.zst", sha256="0" * 64),
        (Part("python", "/opt/python3.11", deep=True),), scratch="/opt/python3.11.new",
    ),
    AptSource("/etc/apt/sources.list.d/shared.list", "https://example.invalid/apt", "./", "/etc/apt/shared.asc"),
    SourcesDisabled(("example.invalid",), "/etc/apt/sources.list.d/shared.list"),
)  # fmt: skip


@pytest.mark.parametrize("state", SHARED, ids=lambda state: type(state).__name__)
def test_what_a_role_that_stays_wants_too_stays(state: Resource):
    """`remove --roles tensorflow` once marked python3.9-venv, which jax needs, as automatically installed."""
    one, other = (Desired("gpu01", LAYERS.stack, (DesiredRole(name, (), (state,)),)) for name in ("one", "other"))
    (alone,) = removal_of(one).roles
    (beside,) = removal_of(one, staying=other).roles
    assert alone.resources
    assert beside.resources == ()


def test_of_several_packages_only_those_stay_that_others_want():
    named = (Debs(("gcc", "make", "ninja")), Debs(("gcc",)), Debs(("ninja",)))
    one, *rest = (DesiredRole(str(place), (), (state,)) for place, state in enumerate(named))
    going, staying = (Desired("gpu01", LAYERS.stack, tuple(roles)) for roles in ([one], rest))
    (role,) = removal_of(going, staying=staying).roles
    assert role.resources == (DebsGone(("make",), common=True, label="gcc"),)


def test_the_venv_package_of_two_frameworks_goes_with_the_second():
    jax, tensorflow = (DesiredRole(name, (), (VenvPackage(("3.9",)),)) for name in ("jax", "tensorflow"))
    before, now = (Deb("python3.9-venv", auto=True),), (Deb("python3.9-venv"),)
    world = World(now, before)

    def planned(going: DesiredRole, *staying: DesiredRole) -> list[str]:
        rest = Desired("gpu01", LAYERS.stack, staying)
        (role,) = removal_of(Desired("gpu01", LAYERS.stack, (going,)), staying=rest).roles
        return [change.want for state in role.resources if (change := state.plan(world.facts()))]

    assert planned(tensorflow, jax) == []
    assert planned(jax) == ["as before: python3.9-venv automatic"]


def test_no_rule_of_what_fits_keeps_a_layer_from_going():
    """A host that no longer fits the stack (after a distribution upgrade) can still be cleaned."""
    gone = removal_of(LAYERS)
    misfit = facts(gone, {"no-cudnn"}, {OS_RELEASE: "ID=plan9\nVERSION_ID=4\n"})
    assert [role.role for role in make_plan(gone, misfit).roles] == ["cudnn"]
    bare = facts(LAYERS, {"cudnn"}, {OS_RELEASE: "ID=plan9\nVERSION_ID=4\n"})
    assert make_plan(LAYERS, bare).roles[0].role == PREFLIGHT, "it would be refused the other way round"


RECORD = {"schema": 1, "stack": "s", "roles": {"cuda": {"desired": "a"}, "cudnn": {"desired": "b"}}, "desired": "x"}


@pytest.mark.parametrize(
    ("before", "gone", "left"),
    [
        (RECORD, ["cudnn"], ["cuda"]),
        (RECORD, ["cudnn", "cuda", "base"], []),
        (RECORD, ["container"], None),
        ({}, ["cuda"], None),
    ],
)
def test_the_record_names_what_is_left(before, gone, left):
    after = reduced(before, gone)
    if left is None:
        assert after is None
    elif not left:
        assert after == {}
    else:
        assert after is not None
        assert list(after["roles"]) == left
        assert after["desired"] != before["desired"]


def test_a_role_whose_record_says_nonsense_is_no_error():
    assert reduced({**RECORD, "roles": {"cuda": {"desired": "a"}, "odd": 7}}, ["cuda"]) is not None


def written(before: dict[str, object], *, depart: bool) -> list[str]:
    """Return the commands on a host with this record from which cudnn, cuda and base were removed."""
    scripts: list[str] = []

    def run(script: str, *, timeout_s: float, failure: str) -> None:
        scripts.append(script)

    books = HostRecords(SimpleNamespace(run=run), removal_of(LAYERS), release.RunStamp("run"))
    books.note_removal(Facts({release.RELEASE: Answer(0, json.dumps(before))}), depart=depart)
    return scripts


OURS = {**RECORD, "roles": {name: {"desired": "a"} for name in ("base", "cuda", "cudnn")}}


def test_what_was_kept_stays_where_not_every_layer_was_to_go():
    """The record names only one role that was provisioned with another stack, while the others are still installed."""
    assert written(OURS, depart=False) == [departure.FORGET_RELEASE]
    assert written({**OURS, "roles": {"cuda": {"desired": "a"}}}, depart=False) == [departure.FORGET_RELEASE]
    assert written({}, depart=False) == []


@pytest.mark.parametrize("before", [OURS, {}, {**OURS, "roles": {}}])
def test_removing_all_layers_removes_kept_files_without_a_record(before: dict[str, object]):
    assert written(before, depart=True) == [departure.DEPART]


def test_kept_files_stay_while_the_record_names_another_layer():
    """The layer is unknown to this machine: a role of the site from another checkout."""
    (script,) = written({**OURS, "roles": {**OURS["roles"], "site": {"desired": "a"}}}, depart=True)
    assert '"site"' in script
    assert departure.DEPART not in script
    assert written({**OURS, "roles": {"site": {"desired": "a"}}}, depart=True) == []


#: Hostwright's own files on a host
PLACES = (
    "/tmp/hostwright-work",  # noqa: S108 - in a script that is never run there
    "/var/lib/hostwright",
    "/var/cache/hostwright",
    "/opt/hostwright",
    "/usr/local/lib/hostwright",
)


def test_what_hostwright_kept_goes_and_what_belongs_to_others_stays(tmp_path: Path):
    state, cache, opt = tmp_path / "var/lib/hostwright", tmp_path / "var/cache/hostwright", tmp_path / "opt/hostwright"
    for path in ("jobs/1/log", "origin/packages", "unpacked/cudnn", "release.json", "set-aside/usr/lib/x/.keep"):
        (state / path).parent.mkdir(parents=True, exist_ok=True)
        (state / path).touch()
    (state / "lock.json").write_text("{}")
    (state / "set-aside" / "etc" / "empty").mkdir(parents=True)
    (cache / "artifacts").mkdir(parents=True)
    (cache / "artifacts" / "driver.run").touch()
    (opt / "venvs").mkdir(parents=True)
    script = departure.DEPART
    for place in PLACES:
        script = script.replace(place, f"{tmp_path}{place}")
    for _ in range(2):  # safe to be interrupted and repeated
        subprocess.run(["/bin/sh"], input=script.encode(), check=True)
        left = sorted(str(path.relative_to(state)) for path in state.rglob("*") if path.is_file())
        assert left == ["lock.json", "set-aside/usr/lib/x/.keep"]
        assert not (state / "set-aside" / "etc").exists()
        assert not cache.exists()
        assert not opt.exists()
    assert release.PATH.startswith("/var/lib/hostwright/")


def test_directories_that_are_links_or_filesystems_of_their_own_stay_without_an_error(tmp_path: Path):
    script, mounts = departure.DEPART, ""
    for place in PLACES:
        script = script.replace(place, f"{tmp_path}{place}")
    for name in ("opt", "data", "var/cache/hostwright/artifacts", "var/lib/hostwright"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "opt" / "hostwright").symlink_to(tmp_path / "data")
    for mounted in ("var/cache/hostwright/artifacts", "var/lib/hostwright"):
        mounts += sh("mount -t tmpfs tmpfs %s; mkdir %s\n", tmp_path / mounted, tmp_path / mounted / "jobs")
    done = in_namespace(f"{mounts}{script}\n" + sh("find %s -mindepth 1", tmp_path / "var/cache/hostwright/artifacts"))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert (tmp_path / "opt" / "hostwright").is_symlink()


STACK = load_stack("tensorflow-2.9", [INVENTORY / "stacks"])


def target(name: str, roles: Sequence[str] = ("base", "cuda")) -> Any:
    """Return a host of a fleet with the roles base and cuda."""
    named = tuple(SimpleNamespace(name=role) for role in roles)
    every = tuple(SimpleNamespace(name=role) for role in ("base", "cuda"))
    shell = closing(io.BytesIO())
    host = {"name": name, "stack": STACK, "kinds": KINDS, "roles": named, "of_host": every, "stand_ins": ()}
    return SimpleNamespace(**host, connect=lambda *_: shell)


def looked(monkeypatch: pytest.MonkeyPatch, name: str, record: dict[str, Any] | Exception) -> removal.Formers:
    """Return the result of probing a host with this record, or a failed probe."""

    def ask(*_: object) -> Facts:
        if isinstance(record, Exception):
            raise record
        return Facts({release.RELEASE: Answer(0, json.dumps(record)), release.FORMERS: Answer(0, "")})

    monkeypatch.setattr(removal, "ask", ask)
    fleet = SimpleNamespace(roles=target(name).roles, also=lambda target, _: target)
    return removal.probe_formers(fleet, Targets((target(name),)), Connections())  # type: ignore[arg-type]


def test_a_host_whose_former_stacks_were_not_seen_is_not_touched(monkeypatch: pytest.MonkeyPatch):
    formers = looked(monkeypatch, "gpu01", Unreachable("gpu01", "no answer"))
    with pytest.raises(Unreachable, match="no answer"):
        formers.of("gpu01")
    with pytest.raises(HostError, match="gpu02"):
        formers.of("gpu02")


@pytest.mark.parametrize(
    ("record", "known"),
    [
        ({}, True),
        ({**RECORD, "schema": 2, "digest": STACK.digest()}, True),
        ({**RECORD, "stack": STACK.name, "versions": STACK.versions()}, True),
        ({**RECORD, "digest": "f" * 64}, False),
        (RECORD, False),
    ],
)
def test_kept_files_stay_if_a_former_stack_is_unknown_here(
    monkeypatch: pytest.MonkeyPatch, record: dict[str, Any], known: bool
):
    assert looked(monkeypatch, "gpu01", record).of("gpu01").known == known


def test_a_host_with_the_record_of_a_newer_version_is_not_touched(monkeypatch: pytest.MonkeyPatch):
    formers = looked(monkeypatch, "gpu01", {**RECORD, "schema": 3})
    with pytest.raises(Refused, match="written by a newer Hostwright"):
        formers.of("gpu01")


def test_every_layer_was_named_only_where_every_role_was():
    assert removal.whole(target("gpu01", ["cuda", "base"]))
    assert not removal.whole(target("gpu01", ["cuda"]))


class Verb:
    """``invoke remove`` with a fleet of two hosts, of which one did not answer its probe."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, known: bool, roles: Sequence[str]):
        self.targets = Targets((target("gpu01"), target("gpu02")))
        self.goal: Any = None
        self.store: Any = None
        found = {"gpu01": removal.Former("gpu01", (), known=known)}
        errors = {"gpu02": Unreachable("gpu02", "no answer")}
        monkeypatch.setattr(removal, "probe_formers", lambda *_: removal.Formers(found, errors))
        monkeypatch.setattr(removal, "removal_of", lambda desired, former, staying: "gone")
        self.roles = tuple(SimpleNamespace(name=name, needs=()) for name in roles)
        monkeypatch.setattr("hostwright.cli.opening.open_fleet", lambda *_, **__: self)
        monkeypatch.setattr("hostwright.cli.opening.targets_of", lambda *_: self.targets)
        for one in self.targets:
            one.desired = "here"  # type: ignore[misc]
            one.of_host = self.roles  # type: ignore[misc]
            one.having = lambda _, one=one: one  # type: ignore[misc]
            one.rest = one  # type: ignore[misc]

    def also(self, target: Any, _: object) -> Any:
        return target

    def removal(self, targets: Targets) -> removal.Removal:
        return removal.removal(self, targets, Connections())  # type: ignore[arg-type]

    def plan(self, targets: Targets, *, goal: Any, password: None) -> Results[Plan]:
        self.goal = goal
        return Results((), ())

    def remove(self, targets: Targets, goal: Any, _request: Request, **_: Any) -> RunResults[Outcome]:
        self.goal = goal
        return RunResults("run", Results((), ()), 0)


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(
    ("roles", "known", "departs"),
    [
        (("base", "cuda"), True, True),
        (("base", "cuda", "cudnn"), True, False),
        (("base", "cuda"), False, False),
    ],
)
def test_remove_lists_what_goes_and_keeps_what_it_cannot_read(
    monkeypatch: pytest.MonkeyPatch, check: bool, roles: tuple[str, ...], known: bool, departs: bool
):
    verb = Verb(monkeypatch, roles=roles, known=known)
    assert remove(Request("all", yes=True, check=check)) == 0
    first, second = verb.targets
    assert verb.goal.desired(first) == "gone"
    with pytest.raises(Unreachable):
        verb.goal.desired(second)
    assert verb.goal.departs(first) == departs


class Disk:
    """A host's disk of venvs: ``tf-py3.9-a…`` was replaced by ``tf-py3.9-b…``, the target of ``link``."""

    def __init__(self, root: Path, link: str = "opt/tf", name: str = "tf"):
        self.root, self.homes = root, root / "opt/hostwright/venvs"
        self.former, self.now = (self.homes / f"{name}-py3.9-{key * 12}" for key in "ab")
        for home in (self.former, self.now):
            (home / "bin").mkdir(parents=True)
            (home / "bin/python").symlink_to(sys.executable)
        self.link = root / link
        self.link.parent.mkdir(parents=True, exist_ok=True)
        self.link.symlink_to(self.now)

    def mark(self) -> None:
        """Record on the host that the link is ours, as a provision does."""
        mark = self.root / f"var/lib/hostwright/origin/files{self.link}.written"
        mark.parent.mkdir(parents=True)
        mark.touch()

    def clean(self) -> list[str]:
        """Return the names of the remaining venvs."""
        script = departure.clean_script(STACK.used_by(STACK.roles))
        script = script.replace("if command -v apt-get", "if false")
        for place in ("/var/lib/hostwright", "/var/cache/hostwright", "/opt"):
            script = script.replace(place, f"{self.root}{place}")
        subprocess.run(["/bin/sh"], input=script.encode(), check=True)
        return sorted(path.name for path in self.homes.iterdir())


def test_a_venv_that_was_replaced_makes_room(tmp_path: Path):
    disk = Disk(tmp_path)
    Path(f"{disk.former}.wheels").mkdir()
    assert disk.clean() == [disk.now.name]
    disk = Disk(tmp_path / "again", link="srv/it's tf", name="a[b].c")
    disk.mark()
    assert disk.clean() == [disk.now.name]


def test_a_venv_whose_link_lies_anywhere_stays(tmp_path: Path):
    disk = Disk(tmp_path, link="srv/tf")
    both = sorted([disk.former.name, disk.now.name])
    assert disk.clean() == both, "nobody said where its link is"
    disk.mark()
    assert disk.clean() == [disk.now.name], "its mark says so"
    disk.link.unlink()
    assert disk.clean() == [disk.now.name]


def test_directories_of_others_and_venvs_in_use_stay(tmp_path: Path):
    disk = Disk(tmp_path)
    (disk.homes / "theirs").mkdir()
    (disk.homes / "other-py3.9-cccccccccccc").mkdir()
    (disk.homes / "xtf-py3.9-cccccccccccc").mkdir()
    everything = sorted(path.name for path in disk.homes.iterdir())
    with subprocess.Popen([f"{disk.former}/bin/python", "-c", "input()"], stdin=subprocess.PIPE) as job:
        try:
            assert disk.clean() == everything
        finally:
            job.communicate(b"\n")
    everything.remove(disk.former.name)
    assert disk.clean() == everything


def test_host_going_down_during_cleanup_is_not_blamed():
    session: Any = SimpleNamespace(
        host=SimpleNamespace(name="gpu01"), run=lambda *_, **__: Output(143, b"", b"Terminated\n", False, 0.0)
    )
    with pytest.raises(Unreachable, match="the program that Hostwright ran was killed on the host"):
        departure.clean(RootShell(session), ())
