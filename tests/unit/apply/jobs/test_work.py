"""Where a job works: a directory of its own in which programs may be run, on the filesystems that hosts really have."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.apply.jobs.scripting import files, work_script
from hostwright.common.quoting import sh
from hostwright.plan.host import jobs as hostjobs
from hostwright.plan.model import Change, RolePlan, Step
from tests.unit.support.hostjobs import lay, make, outputs, start, watch, work_dir
from tests.unit.support.mounts import in_namespace


def chosen(
    root: Path, mounts: dict[str, str], monkeypatch: pytest.MonkeyPatch, umask: int = 0o022, then: str = ""
) -> list[str]:
    """What ``work`` prints and leaves where these filesystems, by options of mount, lie below ``root``."""
    places = ("var", "opt", "local", "tmp")
    monkeypatch.setattr(hostjobs, "WORK_DIRS", tuple(f"{root}/{name}/hostwright/work" for name in places))
    script = sh("mkdir -p %s %s %s %s\n", *(root / name for name in places))
    for name, options in mounts.items():
        script += sh("mount -t tmpfs -o %s tmpfs %s\n", options, root / name)
    script += work_script() + "work job1 || echo none\n" + then
    script += sh("find %s -name 'work' -o -name try\n", root)
    done = in_namespace(script, umask)
    assert done.returncode == 0, done.stderr
    return [line.removeprefix(f"{root}/") for line in done.stdout.splitlines()]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o000, 0o777, 0o027])
def test_a_job_works_below_its_own_state(tmp_path, monkeypatch, umask):
    assert chosen(tmp_path, {}, monkeypatch, umask) == ["var/hostwright/work/job1", "var/hostwright/work"]


@pytest.mark.parametrize("options", ["noexec", "ro", "size=4k,nr_inodes=1"])
def test_where_that_cannot_be_it_works_elsewhere_and_leaves_nothing_behind(tmp_path, monkeypatch, options):
    place, *rest = chosen(tmp_path, {"var": options}, monkeypatch)
    assert (place, rest) == ("opt/hostwright/work/job1", ["opt/hostwright/work"])


@pytest.mark.parametrize("theirs", ["venvs", "work/job2"])
def test_what_was_made_for_a_job_goes_with_it_unless_something_else_is_there(tmp_path, monkeypatch, theirs):
    ours, listing = tmp_path / "opt" / "hostwright", sh("find %s -mindepth 1 -printf '%%P\n'\n", tmp_path / "opt")
    then = sh("unwork %s\n", ours / "work/job1") + listing + "echo and\n"
    then += sh("work job1\nmkdir -p %s\nunwork %s\n", ours / theirs, ours / "work/job1") + listing + "exit\n"
    _, *left = chosen(tmp_path, {"var": "noexec"}, monkeypatch, then=then)
    assert left[:2] == ["and", "opt/hostwright/work/job1"]
    assert left[-1] == f"hostwright/{theirs}"
    assert "hostwright/work/job1" not in left


def test_a_small_filesystem_is_passed_over_for_one_with_room(tmp_path, monkeypatch):
    assert chosen(tmp_path, {"var": "size=1m"}, monkeypatch)[0] == "opt/hostwright/work/job1"


def test_of_small_ones_the_largest_is_taken(tmp_path, monkeypatch):
    small = {"var": "size=1m", "opt": "size=2m", "local": "size=3m,noexec", "tmp": "size=1m"}
    assert chosen(tmp_path, small, monkeypatch)[0] == "opt/hostwright/work/job1"


def test_where_nothing_may_execute_it_says_so(tmp_path, monkeypatch):
    assert chosen(tmp_path, dict.fromkeys(("var", "opt", "local", "tmp"), "noexec"), monkeypatch) == ["none"]


def test_a_directory_that_somebody_else_made_is_passed_over(tmp_path, monkeypatch):
    theirs = tmp_path / "var" / "hostwright" / "work"
    theirs.mkdir(parents=True)
    theirs.chmod(0o777)
    assert chosen(tmp_path, {}, monkeypatch)[0] == "opt/hostwright/work/job1"


def test_a_file_in_its_place_is_passed_over(tmp_path, monkeypatch):
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "hostwright").write_text("theirs")
    assert chosen(tmp_path, {}, monkeypatch)[0] == "opt/hostwright/work/job1"


@pytest.mark.parametrize("theirs", ["/run/user/1000", "/not/there", "relative", "a b", "/dev/null"])
def test_a_step_has_its_own_directory_whatever_tmpdir_was_set(tmp_path, monkeypatch, theirs):
    for name in ("TMPDIR", "TMP", "TEMP"):
        monkeypatch.setenv(name, theirs)
    lay(tmp_path, monkeypatch)
    work_dirs = work_dir(tmp_path)
    step = 'echo "$TMPDIR ${TMP-} ${TEMP-}"; cd "$TMPDIR"; printf "#!/bin/sh\\necho ran\\n" >x; chmod +x x; ./x; mktemp'
    job = make(step)
    start(job)
    log, status = watch(job)
    own, ran, made = outputs(log)[0].splitlines()
    assert (own.rstrip(), ran, status) == (f"{work_dirs}/{job.id}", "ran", 0)
    assert made.startswith(f"{work_dirs}/{job.id}/")
    assert not work_dirs.exists(), "a job takes its directory with it"


def test_what_hosts_hook_into_apt_restarts_and_asks_nothing(tmp_path, monkeypatch):
    """projectcalico/calico#12137: needrestart in mode `a` ends the services that people work with."""
    monkeypatch.setenv("NEEDRESTART_MODE", "a")
    lay(tmp_path, monkeypatch)
    job = make("sh -c 'env | grep -e ^NEEDRESTART_ -e _FRONTEND= | sort'")
    start(job)
    log, _ = watch(job)
    assert outputs(log)[0].split() == [
        "APT_LISTBUGS_FRONTEND=none", "APT_LISTCHANGES_FRONTEND=none", "DEBIAN_FRONTEND=noninteractive",
        "NEEDRESTART_MODE=l", "NEEDRESTART_SUSPEND=1",
    ]  # fmt: skip


def test_what_a_killed_job_left_is_removed_when_the_next_one_starts(tmp_path, monkeypatch):
    lay(tmp_path, monkeypatch)
    work_dirs = work_dir(tmp_path)
    (work_dirs / "a-dead-job").mkdir(parents=True)
    (work_dirs / "check.1").mkdir()
    job = make("true")
    start(job)
    assert watch(job)[1] == 0
    assert [path.name for path in work_dirs.iterdir()] == ["check.1"], "a check may be running"
    (work_dirs / "check.1").rmdir()


def test_nothing_is_removed_below_a_folder_that_somebody_else_could_turn_into_a_link(tmp_path, monkeypatch):
    lay(tmp_path, monkeypatch)
    work_dirs = work_dir(tmp_path)
    (tmp_path / "precious" / "data").mkdir(parents=True)
    theirs, linked = tmp_path / "theirs", tmp_path / "linked"
    (theirs / "a-dead-job").mkdir(parents=True)
    theirs.chmod(0o777)
    linked.symlink_to(tmp_path / "precious")
    monkeypatch.setattr(hostjobs, "WORK_DIRS", (*hostjobs.WORK_DIRS, str(theirs), str(linked)))
    (work_dirs / "a-dead-job").mkdir(parents=True)
    job = make("true")
    start(job)
    assert watch(job)[1] == 0
    left = [path.exists() for path in (work_dirs / "a-dead-job", theirs / "a-dead-job", tmp_path / "precious" / "data")]
    assert left == [False, True, True]


def test_a_job_goes_on_where_nothing_may_execute(tmp_path, monkeypatch):
    monkeypatch.setattr(hostjobs, "WORK_DIRS", (str(tmp_path / "noexec" / "work"),))
    plan = RolePlan("cuda", (), (Change("thing", "no", "yes", (Step('echo "in $TMPDIR"'),)),))
    for name, text in {**files(plan, "NONCE"), "log": ""}.items():
        (tmp_path / name).write_text(text)
    mount = sh("mkdir %s; mount -t tmpfs -o noexec tmpfs %s\n", *[tmp_path / "noexec"] * 2)
    run = sh("JOB=%s; export JOB; sh %s >>%s; cat %s", tmp_path, tmp_path / "run", *[tmp_path / "log"] * 2)
    done = in_namespace(mount + run)
    assert done.returncode == 0, done.stderr
    assert "hostwright: no directory was found in which programs may be run" in done.stdout
    assert f"in {tmp_path}\n" in done.stdout, "root's own directory, and not everybody's /tmp"
