"""The jobs that run on a host are found, with all that is needed to follow them; old ones are removed."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from hostwright.apply.jobs import jobs
from hostwright.apply.jobs.scripting import LogReader
from hostwright.plan.host import jobs as hostjobs
from hostwright.plan.model import Answer, Change, Facts, RolePlan, Step
from tests.unit.support.hostjobs import ask, entry, lay, make, start, systemd, until, waiting, watch
from tests.unit.support.shell import run as shell

BOOT = Path("/proc/sys/kernel/random/boot_id").read_text()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return lay(tmp_path, monkeypatch)


def test_running_job_is_found_with_what_is_needed_to_follow_it(place, tmp_path):
    job = make(waiting(tmp_path / "go"), "echo 'two'", name="run1-cuda-aa")
    start(job)
    until((place / job.id / "pid").exists, "the process")
    [found] = ask(place)
    assert found == hostjobs.RunningJob(job.id, "cuda", "NONCE", "run1", "jane@laptop", ("thing 0", "thing 1"))
    (tmp_path / "go").touch()
    reader = LogReader(found.role, found.steps, found.nonce)
    reader.feed(watch(job)[0])
    assert [(step.what, step.status) for step in reader.results] == [("thing 0", 0), ("thing 1", 0)]
    assert ask(place) == ()


def test_only_a_job_of_this_boot_whose_process_is_its_own_runs(place, tmp_path):
    sleeper = lambda name: subprocess.Popen(  # noqa: E731
        ["/bin/sh", "-c", "read -r x", f"{place}/{name}/wrapper"], stdin=subprocess.PIPE
    )
    lives, other_boot = sleeper("lives"), sleeper("other-boot")
    entry(place, "lives", pid=f"{lives.pid}\n", boot=BOOT)
    entry(place, "other-boot", pid=f"{other_boot.pid}\n", boot="not this one")
    entry(place, "ended", pid=f"{lives.pid}\n", boot=BOOT, status="0\n")
    entry(place, "reused", pid=f"{lives.pid}\n", boot=BOOT)  # the number is another process's now
    entry(place, "this-test", pid=f"{os.getpid()}\n", boot=BOOT)
    entry(place, "died", pid="4194305\n", boot=BOOT)
    entry(place, "odd", pid="../../etc\n", boot=BOOT)
    entry(place, "never-begun")
    entry(place, "begun-and-gone", begun="")
    entry(place, "run1-cuda-aa.x1Y2z3.new", pid=f"{lives.pid}\n", boot=BOOT)
    found = ask(place)
    for process in (lives, other_boot):
        process.communicate()
    assert found == (hostjobs.RunningJob("lives"),)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_process_of_somebody_elses_with_the_words_of_a_job_is_none(place):
    """Process ids come again, and whoever starts a process chooses its command line."""
    argv = ["/bin/sh", "-c", "read -r x", f"{place}/forged/wrapper"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, user=65534, group=65534, extra_groups=[], cwd="/") as forger:
        entry(place, "forged", pid=f"{forger.pid}\n", boot=BOOT)
        found = ask(place)
        forger.communicate()
    assert found == ()


@pytest.mark.parametrize("active", [True, False])
def test_a_job_that_has_no_process_yet_runs_when_its_unit_does(place, tmp_path, active):
    entry(place, "young", **{"job.json": make("true").to_json()})
    found = ask(place, systemd(tmp_path, active))
    assert [(job.id, job.role) for job in found] == ([("young", "cuda")] if active else [])


GOOD = json.loads(make("true").to_json())


@pytest.mark.parametrize(
    "record",
    [
        "",
        "{",
        "[" * 100_000,
        "[1]",
        "null",
        json.dumps({**GOOD, "schema": 2}),
        json.dumps({**GOOD, "role": 1}),
        json.dumps({**GOOD, "steps": "abc"}),
        json.dumps({**GOOD, "steps": ["a", 1]}),
        json.dumps({**GOOD, "nonce": "$(x)"}),
        json.dumps({key: value for key, value in GOOD.items() if key != "operator"}),
    ],
    ids=range(11),
)
def test_a_job_with_a_damaged_record_is_found_without_it(record):
    assert hostjobs.running(Facts({hostjobs.RUNNING: Answer(0, f"job-1 {record}\n")})) == (
        hostjobs.RunningJob("job-1"),
    )


def test_a_record_is_one_line_whatever_its_steps_say():
    change = Change("ü\n\u2028run-2 {}", "", "", (Step("true"), Step("true")))
    job = jobs.Job("job-1", RolePlan("cuda", (), (change,)), "NONCE")
    [found] = hostjobs.running(Facts({hostjobs.RUNNING: Answer(0, f"job-1 {job.to_json()}")}))
    assert found.steps == (change.what, change.what)
    assert found.operator == ""


@pytest.mark.parametrize("name", ["../../etc", "", "a/b", "Upper", "a b", "$(x)", "-x", "a.new", "a\n"])
def test_a_name_that_is_no_job_is_refused(name):
    with pytest.raises(ValueError, match="not a job ID"):
        make("true", name=name)
    with pytest.raises(ValueError, match="not a job ID"):
        jobs.watch_script(name, "W")
    answer = Answer(0, f"good-1 {{}}\n{name} {{}}\n")
    assert {job.id for job in hostjobs.running(Facts({hostjobs.RUNNING: answer}))} <= {"good-1", "a"}


# What is kept


def finished(place: Path, name: str, age_s: int, bytes_: int = 10) -> None:
    entry(place, name, status="0\n", log="x" * bytes_)
    os.utime(place / name, (time.time() - age_s,) * 2)


def names(place: Path) -> set[str]:
    return {entry.name for entry in place.iterdir()}


def test_jobs_that_do_not_run_are_removed_oldest_first(place, monkeypatch):
    monkeypatch.setattr(jobs, "KEEP_JOBS", 3)
    for number in range(5):
        finished(place, f"job-{number}", age_s=1000 - number)
    entry(place, "lost", boot="another boot", pid="1\n")
    os.utime(place / "lost", (0, 0))
    start(make("true"))
    assert names(place) == {"job-3", "job-4", "run1-cuda-aa"}


def test_jobs_are_removed_oldest_first_until_they_are_small_enough_together(place, monkeypatch):
    monkeypatch.setattr(jobs, "KEEP_BYTES", 250_000)
    monkeypatch.setattr(jobs, "KEEP_ALWAYS", 1)
    for number in range(5):
        finished(place, f"job-{number}", age_s=1000 - number, bytes_=100_000)
    start(make("true"))
    assert names(place) == {"job-3", "job-4", "run1-cuda-aa"}


def test_the_last_jobs_stay_whatever_their_size(place, monkeypatch):
    """Another role's watch may be reading that log in this moment."""
    monkeypatch.setattr(jobs, "KEEP_BYTES", 1)
    for number in range(10):
        finished(place, f"job-{number}", age_s=1000 - number)
    start(make("true"))
    assert names(place) == {f"job-{number}" for number in range(2, 10)} | {"run1-cuda-aa"}


def test_a_running_job_is_never_removed(place, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "KEEP_JOBS", 1)
    job = make(waiting(tmp_path / "go"), name="run0-driver-aa")
    start(job)
    until((place / job.id / "pid").exists, "the process")
    os.utime(place / job.id, (0, 0))
    start(make("true"))
    (tmp_path / "go").touch()
    assert watch(job)[1] == 0


def test_what_a_broken_start_left_is_removed_when_it_is_old(place):
    entry(place, "run0-cuda-aa.abcdef.new")
    entry(place, "run0-cuda-bb.abcdef.new")
    os.utime(place / "run0-cuda-aa.abcdef.new", (0, 0))
    start(make("true"))
    assert names(place) == {"run0-cuda-bb.abcdef.new", "run1-cuda-aa"}


def begun(place: Path, run: str) -> tuple[hostjobs.RunningJob, ...]:
    script = hostjobs.begun_by(run).script.replace("/var/lib/hostwright/jobs", str(place))
    return hostjobs.read_jobs(shell(script).stdout.decode())


def test_jobs_that_a_run_began_are_found_whether_they_run_or_not_the_oldest_first(place, tmp_path):
    assert begun(place / "none", "run1") == ()
    for number, name in enumerate(("run1-base-zz", "run1-cuda-aa")):
        job = make("true", "true", name=name)
        start(job)
        until((place / name / "status").exists, "the end")
        os.utime(place / name, (number, number))
    start(make(waiting(tmp_path / "go"), name="run1-docker-00"))
    entry(place, "run10-cuda-bb", pid="1\n")  # of another run
    entry(place, "run1-lost-cc")  # one that never began has no record
    found = begun(place, "run1")
    (tmp_path / "go").touch()
    assert [job.id for job in found] == ["run1-base-zz", "run1-cuda-aa", "run1-docker-00"]
    assert found[1] == hostjobs.RunningJob(
        "run1-cuda-aa", "cuda", "NONCE", "run1", "jane@laptop", ("thing 0", "thing 1")
    )
    reader = LogReader(found[0].role, found[0].steps, found[0].nonce)
    reader.feed(watch(make("true", "true", name="run1-base-zz"))[0])
    assert [step.status for step in reader.results] == [0, 0]


@pytest.mark.parametrize("run", ["run1; touch broken", "$(touch broken)", "-rf", "a'b", "*"])
def test_a_runs_id_is_never_a_command(place, run, monkeypatch):
    entry(place, "run1-cuda-aa")
    monkeypatch.chdir(place)
    assert begun(place, run) == ()
    assert not (place / "broken").exists()
