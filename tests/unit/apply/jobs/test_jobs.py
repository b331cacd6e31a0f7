"""Jobs are started once, whole, and however often it is asked for; by the real /bin/sh in a folder of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hostwright.apply.jobs import jobs, transient
from hostwright.apply.jobs.scripting import LogReader
from hostwright.common.quoting import sh
from tests.unit.support.hostjobs import altered, ask, lay, make, outputs, shell, start, systemd, until, waiting, watch


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return lay(tmp_path, monkeypatch)


def test_a_job_is_started_watched_and_leaves_log_and_status(place):
    job = make("echo hello; sleep 0.3; echo 'bye $(x)'")
    start(job)
    log, status = watch(job)
    assert (outputs(log), status) == (["hello\nbye $(x)"], 0)
    assert (place / job.id / "status").read_text() == "0\n"
    assert {oct((place / job.id / name).stat().st_mode & 0o777) for name in ("log", "run", "step-0")} == {"0o600"}
    assert oct(place.stat().st_mode & 0o777) == "0o700"


def test_a_retry_goes_on_without_anybody_watching(place, tmp_path, monkeypatch):
    monkeypatch.setattr(transient, "BACKOFF_S", 0.05)
    once = tmp_path / "once"
    job = make(
        sh("[ -e %s ] || { touch %s; echo 'E: Could not get lock /var/lib/dpkg/lock'; exit 100; }", once, once), tries=3
    )
    start(job)
    until((place / job.id / "status").exists, "the end")
    reader = LogReader("cuda", ["a"], "NONCE")
    reader.feed(watch(job)[0])
    assert [(step.status, step.tries) for step in reader.results] == [(0, 2)]


def test_starting_twice_does_it_once(place, tmp_path):
    """The connection dropped before the answer came: while the job runs, and when it has ended."""
    job = make(f"echo x >>{tmp_path / 'count'}; {waiting(tmp_path / 'go')}")
    for _ in range(3):
        start(job)
    (tmp_path / "go").touch()
    assert watch(job)[1] == 0
    start(job)
    assert (tmp_path / "count").read_text() == "x\n"
    assert [entry.name for entry in place.iterdir()] == [job.id]


def test_starting_at_the_same_moment_does_it_once(place, tmp_path):
    job = make(f"echo x >>{tmp_path / 'count'}")
    started = [subprocess.Popen(["/bin/sh", "-c", jobs.start_script(job)], stderr=subprocess.PIPE) for _ in range(8)]
    assert [process.communicate(timeout=60)[1] for process in started] == [b""] * 8
    assert [process.returncode for process in started] == [0] * 8
    assert watch(job)[1] == 0
    assert (tmp_path / "count").read_text() == "x\n"
    assert [entry.name for entry in place.iterdir()] == [job.id]


def unbegun(job: jobs.Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job whose start was killed between the directory's coming and its beginning."""
    with monkeypatch.context() as patch:
        altered(patch, "start_script", '|| alive "$job_id" || begin', "|| :")
        start(job)


def test_what_was_put_there_and_never_begun_is_begun_now(place, tmp_path, monkeypatch):
    job = make("echo now")
    unbegun(job, monkeypatch)
    assert not (place / job.id / "begun").exists()
    assert ask(place) == ()
    start(job)
    assert (outputs(watch(job)[0]), watch(job)[1]) == (["now"], 0)


def test_job_files_are_written_again_after_a_host_went_down(place, monkeypatch):
    """A directory may survive a crash without the contents of its files; an empty program would succeed."""
    job = make("echo now")
    unbegun(job, monkeypatch)
    (place / job.id / "boot").write_text("another boot")
    (place / job.id / "run").write_text("")
    start(job)
    assert (outputs(watch(job)[0]), watch(job)[1]) == (["now"], 0)


def test_what_ran_before_the_host_went_down_is_not_run_again(place, tmp_path):
    job = make(f"echo x >>{tmp_path / 'count'}")
    start(job)
    watch(job)
    (place / job.id / "boot").write_text("another boot")
    (place / job.id / "status").unlink()
    start(job)
    assert watch(job)[1] is None
    assert (tmp_path / "count").read_text() == "x\n"


def test_a_job_begins_once_however_often_its_wrapper_is_started(place, tmp_path, monkeypatch):
    job = make(f"echo x >>{tmp_path / 'count'}")
    unbegun(job, monkeypatch)
    environment = {**os.environ, "JOB": str(place / job.id)}
    wrappers = [subprocess.Popen(["/bin/sh", place / job.id / "wrapper"], env=environment) for _ in range(8)]
    assert [process.wait(timeout=30) for process in wrappers] == [0] * 8
    assert watch(job)[1] == 0
    assert (tmp_path / "count").read_text() == "x\n"


def test_where_nothing_can_be_written_it_says_so_and_leaves_nothing(place):
    done = shell("ulimit -f 1\n" + jobs.start_script(make("true")))
    assert done.returncode == 1
    assert b"hostwright: the job run1-cuda-aa cannot be started: its files cannot be written" in done.stderr
    assert list(place.iterdir()) == []


def test_where_no_directory_can_be_made_it_says_so(place):
    place.parent.joinpath("jobs").write_text("a file is in the way")
    done = shell(jobs.start_script(make("true")))
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[-1].startswith("hostwright: the job run1-cuda-aa cannot be started:")


# Systemd, as far as its commands' names go; the lab has the real one


def test_the_unit_is_asked_for_with_what_the_job_needs(place, tmp_path, monkeypatch):
    folder = systemd(tmp_path, active=False)
    altered(monkeypatch, "start_script", str(tmp_path / "no-systemd"), str(folder), f"PATH={folder}:$PATH\n")
    start(make("true"))
    [asked] = (folder / "asked").read_text().splitlines()
    assert asked.startswith("--quiet --collect --unit=hostwright-run1-cuda-aa.service --description=Hostwright: cuda")
    assert f"--setenv=JOB={place}/run1-cuda-aa /bin/sh {place}/run1-cuda-aa/wrapper" in asked
    assert "-p TimeoutStopSec=300 --setenv" in asked, "an older systemd is not told of an OOM policy"


def test_a_unit_that_systemd_refuses_is_an_error(place, tmp_path, monkeypatch):
    folder = systemd(tmp_path, active=False, refuses=True)
    altered(monkeypatch, "start_script", str(tmp_path / "no-systemd"), str(folder), f"PATH={folder}:$PATH\n")
    done = shell(jobs.start_script(make("true")))
    assert done.returncode == 1
    assert done.stderr == b"no bus\nhostwright: the job run1-cuda-aa cannot be started: systemd refuses its unit\n"
