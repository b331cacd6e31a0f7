"""Jobs: the programs that start, watch and find them, run by the real /bin/sh in a folder of their own."""

import os
import subprocess
from pathlib import Path

import pytest

from hostwright import jobs, scripting
from hostwright.model import Answer, Change, Facts, RolePlan, Step
from hostwright.scripting import LogReader


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(jobs, "JOBS_DIR", str(tmp_path / "jobs"))
    monkeypatch.setattr(scripting, "LOCK_DIR", str(tmp_path / "locks"))
    monkeypatch.setattr(jobs, "_START", jobs._START.replace("/run/systemd/system", str(tmp_path / "no-systemd")))
    return tmp_path / "jobs"


def make(script: str, name: str = "run1-cuda-aa") -> jobs.Job:
    return jobs.Job(name, RolePlan("cuda", (), (Change("x", "a", "b", (Step(script),)),)), "NONCE")


def shell(text: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["/bin/sh"], input=text.encode(), capture_output=True, check=False, timeout=60)


def test_a_job_is_started_watched_and_leaves_log_and_status(place):
    job = make("echo hello; sleep 0.3; echo 'bye $(x)'")
    assert shell(jobs.start_script(job)).returncode == 0
    watched = shell(jobs.watch_script(job.id, "W"))
    reader = LogReader(job.plan, "NONCE")
    reader.feed(watched.stdout)
    assert jobs.status_in(watched.stderr, "W") == 0
    assert reader.results[0].output == "hello\nbye $(x)"
    assert (place / job.id / "status").read_text() == "0\n"
    assert {oct((place / job.id / name).stat().st_mode & 0o777) for name in ("log", "run", "step-0")} == {"0o600"}


def test_watching_again_from_a_byte_on_misses_nothing(place):
    job = make("echo 0123456789; exit 5")
    shell(jobs.start_script(job))
    whole = shell(jobs.watch_script(job.id, "W"))
    again = shell(jobs.watch_script(job.id, "W", from_byte=11))
    assert again.stdout == whole.stdout[10:]
    assert jobs.status_in(again.stderr, "W") == 5


def test_a_job_whose_host_went_down_is_lost_not_done(place):
    job = make("true")
    shell(jobs.start_script(job))
    shell(jobs.watch_script(job.id, "W"))
    (place / job.id / "status").unlink()
    assert jobs.status_in(shell(jobs.watch_script(job.id, "W")).stderr, "W") is None


def test_only_a_job_of_this_boot_that_lives_is_running(place):
    script = jobs.RUNNING.script.replace("/var/lib/hostwright/jobs", str(place))
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    for name, content in {
        "lives": {"pid": str(os.getpid()), "boot": boot},
        "ended": {"pid": str(os.getpid()), "boot": boot, "status": "0"},
        "other-boot": {"pid": str(os.getpid()), "boot": "not this one"},
        "died": {"pid": "4194305", "boot": boot},
        "young": {},
    }.items():
        (place / name).mkdir(parents=True)
        for file, text in content.items():
            (place / name / file).write_text(text)
    facts = Facts({jobs.RUNNING: Answer(0, shell(script).stdout.decode())})
    assert jobs.running(facts) == ("lives",)


def test_old_finished_jobs_are_removed(place, monkeypatch):
    monkeypatch.setattr(jobs, "KEEP_JOBS", 3)
    for number in range(6):
        job = make("true", f"job-{number}")
        shell(jobs.start_script(job))
        shell(jobs.watch_script(job.id, "W"))
    assert len(list(place.iterdir())) <= 4


def test_a_name_that_is_no_job_is_refused():
    with pytest.raises(ValueError, match="not a job id"):
        make("true", "../../etc")
    assert jobs.running(Facts({jobs.RUNNING: Answer(0, "good-1\n../evil\n$(x)\n")})) == ("good-1",)
