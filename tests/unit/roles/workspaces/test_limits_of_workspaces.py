"""Limits of users and hosts, and disk quotas: plans from answers of a kernel with project quotas."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Change, Deferred, Facts, Refusal
from hostwright.plan.roles.role import RoleContext
from hostwright.standard.roles.workspaces import Workspaces, workspaces
from hostwright.standard.roles.workspaces.states.quota import DiskQuotas, project_of
from tests.unit.roles.workspaces.spaces import DECLARED, ENTRIES, STACK
from tests.unit.roles.workspaces.test_declared import read, refused
from tests.unit.support.stubs import stub

LAB, BOX = "/srv/workspaces/alice/lab", "/srv/workspaces/bob/box"
ID, GIB = project_of(LAB), 2**20
EXT4 = "filesystem /srv ext4 rw,relatime,prjquota\n"
STATE = DiskQuotas("/srv/workspaces", ((LAB, 4 * GIB),), (BOX,))


def planned(text: str, state: DiskQuotas = STATE):
    return state.plan(Facts({state.probes()[0]: Answer(0, text + "end\n")}))


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        ("{shm: 4g}", "have 5 GiB of shared memory (shm), more than {} allows (4g)"),
        ("{pids: 5000}", "have 5120 processes (pids), more than {} allows (5000)"),
        ("{disk: 50g}", "have 60 GiB of disk, more than {} allows (50g)"),
        ("{memory: 4g}", "have 6 GiB of memory, more than {} allows (4g)"),
    ],
)
@pytest.mark.parametrize("whose", ["per_user", "per_host"])
def test_what_people_and_hosts_have_together_is_limited(tmp_path: Path, whose: str, limit: str, sentence: str) -> None:
    two = "a: {user: alice, kind: jupyter, shm: 1g, pids: 1024, disk: 10g, memory: 2g}\n"
    two += "b: {user: alice, kind: jupyter, shm: 4g, disk: 50g, memory: 4g}"
    variable = f"workspaces_{whose}"
    said = refused(tmp_path, two, f"    {variable}: {limit}\n")
    assert sentence.format(variable) in said
    assert said.startswith("inventory/workspaces.yml:11:")
    most = "{shm: 5g, pids: 5120, disk: 60g, memory: 6g}"
    assert read(tmp_path, two, f"    {variable}: {most}\n").containers


def test_a_limit_of_the_disk_must_be_said_by_each(tmp_path: Path) -> None:
    said = refused(tmp_path, "a: {user: alice, kind: jupyter}", "    workspaces_per_user: {disk: 50g}\n")
    assert "disk is missing; workspaces_per_user limits it" in said


def test_the_directory_gets_its_project_and_the_limit_in_kib() -> None:
    plan = planned(EXT4)
    assert isinstance(plan, Change)
    assert plan.want == f"{LAB}: 4 GiB"
    assert f"rows='{LAB} {ID} {4 * GIB}'" in plan.steps[0].script
    assert "target=/srv\n" in plan.steps[0].script
    there = f"{EXT4}limit {ID} {4 * GIB}\nproject {ID} --------------e----P-- {LAB}\n"
    assert planned(there) is None
    for other in (there.replace(f"limit {ID} {4 * GIB}", f"limit {ID} 9"), there.replace("P", "-")):
        assert isinstance(planned(other), Change)


def test_a_limit_that_is_taken_out_goes_and_others_projects_stay() -> None:
    """moby/moby issue 34701: limits leak, and their project numbers belong to others."""
    without = DiskQuotas("/srv/workspaces", (), (LAB, BOX))
    plan = planned(f"{EXT4}limit {ID} 4096\nlimit 3 9999\n", without)
    assert isinstance(plan, Change)
    assert plan.want == f"{LAB}: no limit"
    assert f"rows='{LAB} {ID} 0'" in plan.steps[0].script
    assert planned(f"{EXT4}limit 3 9999\n", without) is None
    (gone,) = STATE.removal()
    assert isinstance(gone, DiskQuotas)
    assert gone.others == (LAB, BOX)
    assert project_of(LAB) > 2**24


@pytest.mark.parametrize(
    ("place", "how"),
    [
        ("/ ext4 rw,relatime", "tune2fs -O project,quota while it is not mounted"),
        ("/srv xfs rw,noquota", "mount it with prjquota (of the root file system: rootflags=prjquota"),
        ("/srv btrfs rw", "use ext4 or xfs"),
    ],
)
def test_a_file_system_without_quotas_is_refused_with_what_to_do(place: str, how: str) -> None:
    """AliyunContainerService/pouch issue 2789: the limit was requested on an unprepared disk."""
    plan = planned(f"filesystem {place}\n")
    assert isinstance(plan, Refusal)
    assert plan.rule == "workspace-disk"
    assert plan.sentence.startswith(
        f"disk limits the files of {LAB}, but /srv/workspaces is on {place.split(maxsplit=1)[0]} ("
    )
    assert how in plan.sentence
    assert planned(f"filesystem {place}\n", DiskQuotas("/srv/workspaces", (), (LAB,))) is None


def test_it_waits_for_its_tools_and_for_a_whole_answer() -> None:
    plan = planned(f"{EXT4}tools absent\n")
    assert isinstance(plan, Deferred)
    assert plan.have == "no setquota"
    cut = STATE.plan(Facts({STATE.probes()[0]: Answer(0, EXT4)}))
    assert isinstance(cut, Deferred)


def test_another_limit_of_the_disk_makes_no_other_container() -> None:
    def states(v: Workspaces) -> list[object]:
        return list(workspaces.resources(v, RoleContext(STACK)))

    more = replace(DECLARED, containers={**ENTRIES, "bob-lab": replace(ENTRIES["bob-lab"], disk="4g")})
    changed = [state for state in states(more) if state not in states(DECLARED)]
    assert [type(state).__name__ for state in changed if getattr(state, "name", "") != "alice-box"][:2] == [
        "Debs", "DiskQuotas",
    ]  # fmt: skip
    (quotas,) = [state for state in changed if isinstance(state, DiskQuotas)]
    assert quotas.limits == (("/srv/workspaces/bob/bob-lab", 4 * GIB),)


def test_the_question_finds_where_files_will_be(tmp_path: Path) -> None:
    """A missing directory, a limit among others, and a link instead of a workspace."""
    (tmp_path / "alice/lab").mkdir(parents=True)
    (tmp_path / "alice/link").symlink_to("/etc")
    rows = (
        "Project,BlockStatus,FileStatus,BlockUsed,BlockSoftLimit,BlockHardLimit\n#0,ok,ok,14,0,0\n#77,ok,ok,1,0,4096\n"
    )
    environment = stub(
        tmp_path,
        findmnt='[ "$4" = "$HERE" ] && echo "/srv ext4 rw,prjquota" || echo "not asked for the nearest: $*"',
        setquota=":",
        repquota=f"printf '%s' '{rows}'",
        lsattr='echo "   77 -----P-- $3"',
    )
    there = DiskQuotas(str(tmp_path)).probes()[0].script
    done = subprocess.run(
        ["/bin/sh", "-c", there], env={**environment, "HERE": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "filesystem /srv ext4 rw,prjquota",
        "limit 77 4096",
        f"project 77 -----P-- {tmp_path}/alice/lab",
        "end",
    ]
    beyond = DiskQuotas(f"{tmp_path}/not/there").probes()[0].script
    done = subprocess.run(
        ["/bin/sh", "-c", beyond],
        env={**environment, "HERE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[0] == "filesystem /srv ext4 rw,prjquota"
