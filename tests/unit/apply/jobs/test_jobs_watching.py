"""A job is watched to its end, whatever that is; a watch that nobody listens to ends by itself."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from hostwright.apply.jobs import jobs
from hostwright.apply.jobs.scripting import LogReader
from hostwright.common.quoting import sh
from tests.unit.support.hostjobs import (
    altered,
    ask,
    entry,
    lay,
    make,
    outputs,
    processes,
    shell,
    start,
    until,
    waiting,
    watch,
)  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return lay(tmp_path, monkeypatch)


def test_watching_again_from_a_byte_on_misses_nothing(place):
    job = make("echo 0123456789; exit 5")
    start(job)
    whole, _ = watch(job)
    assert whole == (place / job.id / "log").read_bytes()
    assert watch(job, from_byte=11) == (whole[10:], 5)
    assert watch(job, from_byte=len(whole) + 1) == (b"", 5)


def test_a_job_is_followed_on_from_where_the_connection_broke(place, tmp_path):
    """The second watch begins in the middle of the log, while the job runs."""
    job = make(f"echo first; {waiting(tmp_path / 'go')}; echo second", "echo third")
    start(job)
    until(lambda: b"first" in (place / job.id / "log").read_bytes(), "the first line")
    reader = LogReader("cuda", ["a", "b"], "NONCE")
    reader.feed((place / job.id / "log").read_bytes()[:-3])
    (tmp_path / "go").touch()
    log, status = watch(job, reader.bytes + 1)
    reader.feed(log)
    assert [(step.what, step.output) for step in reader.result(status or 0).steps] == [
        ("a", "first\nsecond"),
        ("b", "third"),
    ]
    assert reader.bytes == (place / job.id / "log").stat().st_size


# How it ends


def test_a_job_whose_host_went_down_is_lost_not_done(place):
    job = make("echo said")
    start(job)
    watch(job)
    (place / job.id / "status").unlink()
    (place / job.id / "boot").write_text("another boot")
    log, status = watch(job)
    assert (outputs(log), status) == (["said"], None)


def test_a_job_that_is_not_there_is_lost(place):
    assert watch(make("true")) == (b"", None)


def test_a_job_that_died_before_its_process_was_known_is_lost(place, monkeypatch):
    altered(monkeypatch, "watch_script", "-le 100", "-le 5")
    entry(place, "run1-cuda-aa", begun="", log="")
    assert watch(make("true")) == (b"", None)


def test_a_job_that_does_not_start_is_an_error(place, monkeypatch):
    altered(monkeypatch, "watch_script", "-le 100", "-le 5")
    entry(place, "run1-cuda-aa", log="")
    watched = shell(jobs.watch_script("run1-cuda-aa", "W"))
    assert (watched.returncode, watched.stderr) == (1, b"W alive\njob run1-cuda-aa does not start\n")


def test_killed_job_is_lost_after_its_log_is_printed(place, tmp_path):
    job = make(f"echo said; {waiting(tmp_path / 'go')}")
    start(job)
    log = place / job.id / "log"
    until(lambda: b"said" in log.read_bytes(), "the first line")
    watching = subprocess.Popen(
        ["/bin/sh", "-c", jobs.watch_script(job.id, "W")], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    os.kill(int((place / job.id / "pid").read_text()), signal.SIGKILL)
    stdout, stderr = watching.communicate(timeout=30)
    (tmp_path / "go").touch()
    assert jobs.status_in(stderr, "W") is None
    assert b" status lost\n" in stderr
    assert stdout.rstrip().endswith(b"said")


def test_stopped_job_finishes_its_step_and_never_reports_done(place, tmp_path):
    """Systemd's SIGTERM at shutdown goes to the wrapper only; dpkg shall not be cut in two."""
    job = make(f"{waiting(tmp_path / 'go')}; echo whole", sh("touch %s", tmp_path / "second"))
    start(job)
    until(lambda: b"begin 0" in (place / job.id / "log").read_bytes(), "the step")
    pid = int((place / job.id / "pid").read_text())
    os.kill(pid, signal.SIGTERM)
    (tmp_path / "go").touch()
    log, status = watch(job)
    assert (outputs(log), status) == (["whole"], None)
    assert not (place / job.id / "status").exists()
    assert not (tmp_path / "second").exists()


def test_a_stopped_job_does_not_say_that_its_last_step_was_all(place, tmp_path):
    job = make(waiting(tmp_path / "go"))
    start(job)
    until(lambda: b"begin 0" in (place / job.id / "log").read_bytes(), "the step")
    os.kill(int((place / job.id / "pid").read_text()), signal.SIGTERM)
    (tmp_path / "go").touch()
    assert watch(job)[1] is None


# Signs of life


def test_a_watch_gives_signs_of_life_that_stay_small(place, tmp_path):
    job = make(waiting(tmp_path / "go"))
    start(job)
    watching = subprocess.Popen(
        ["/bin/sh", "-c", jobs.watch_script(job.id, "f" * 24).replace("sleep 0.2", "sleep 0.01")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert watching.stderr is not None
    seen = [watching.stderr.readline() for _ in range(3)]
    (tmp_path / "go").touch()
    _, rest = watching.communicate(timeout=30)
    assert seen == [b"f" * 24 + b" alive\n"] * 3
    assert jobs.status_in(b"".join(seen) + rest, "f" * 24) == 0
    assert len(seen[0]) * 6 * 3600 / 2 < 1 << 20


def test_a_watch_whose_connection_died_leaves_nothing_behind_but_the_job(place, tmp_path):
    job = make(waiting(tmp_path / "go"))
    start(job)
    watching = subprocess.Popen(
        ["/bin/sh"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert watching.stdin is not None
    watching.stdin.write(jobs.watch_script(job.id, "W").replace("sleep 0.2", "sleep 0.02").encode())
    watching.stdin.close()
    until(lambda: any("tail" in line for line in processes(watching.pid)), "the watch")
    for stream in (watching.stdout, watching.stderr):
        assert stream is not None
        stream.close()
    until(lambda: not processes(watching.pid), "the end of the watch")
    watching.wait(timeout=10)
    assert [found.id for found in ask(place)] == [job.id]
    (tmp_path / "go").touch()
    assert watch(job)[1] == 0


def test_a_watch_whose_shell_was_killed_leaves_nothing_behind_either(place, tmp_path):
    job = make(waiting(tmp_path / "go"))
    start(job)
    script = jobs.watch_script(job.id, "W").replace("sleep 0.2", "sleep 0.02")
    watching = subprocess.Popen(
        ["/bin/sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    until(lambda: any("tail" in line for line in processes(watching.pid)), "the watch")
    watching.kill()
    watching.wait(timeout=10)
    for stream in (watching.stdout, watching.stderr):
        assert stream is not None
        stream.close()
    until(lambda: not processes(watching.pid), "the end of the watch")
    (tmp_path / "go").touch()
    assert watch(job)[1] == 0
