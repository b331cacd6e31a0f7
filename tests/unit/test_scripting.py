"""A role's program, run by the real /bin/sh; its log, read back in pieces of any size."""

import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright import scripting
from hostwright.model import Change, RolePlan, Step
from hostwright.quoting import sh
from hostwright.scripting import LogReader, files


def role(*scripts: str, **step) -> RolePlan:
    changes = tuple(Change(f"thing {n}", "no", "yes", (Step(script, **step),)) for n, script in enumerate(scripts))
    return RolePlan("cuda", (), changes)


def run(plan: RolePlan, folder, monkeypatch) -> tuple[int, bytes]:
    monkeypatch.setattr(scripting, "LOCK_DIR", str(folder / "locks"))
    for name, text in files(plan, "NONCE").items():
        (folder / name).write_text(text)
    environment = {**os.environ, "JOB": str(folder)}
    done = subprocess.run(
        ["/bin/sh", folder / "run"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return done.returncode, done.stdout


def test_steps_run_in_order_and_their_output_is_theirs(tmp_path, monkeypatch):
    plan = role("echo one", sh("printf '%%s\\n' %s", "it's $(two)"), lock="dpkg")
    status, log = run(plan, tmp_path, monkeypatch)
    reader = LogReader(plan, "NONCE")
    reader.feed(log)
    assert status == 0
    assert [(step.what, step.status, step.output) for step in reader.result(status).steps] == [
        ("thing 0", 0, "one"),
        ("thing 1", 0, "it's $(two)"),
    ]


def test_the_first_failure_ends_the_role(tmp_path, monkeypatch):
    plan = role("echo fine", "echo bad >&2; false; echo not here", "touch never")
    status, log = run(plan, tmp_path, monkeypatch)
    reader = LogReader(plan, "NONCE")
    reader.feed(log)
    assert status == 1
    assert [(step.number, step.status, step.output) for step in reader.results] == [(0, 0, "fine"), (1, 1, "bad")]
    assert not (tmp_path / "never").exists()


def test_a_step_is_ended_at_its_timeout(tmp_path, monkeypatch):
    status, _ = run(role("sleep 60", timeout_s=0.2), tmp_path, monkeypatch)
    assert status == 124


def test_a_step_cannot_swallow_the_steps_after_it(tmp_path, monkeypatch):
    status, log = run(role("cat", "echo second"), tmp_path, monkeypatch)
    assert (status, b"second" in log) == (0, True)


def test_a_held_lock_is_waited_for(tmp_path, monkeypatch):
    """Two roles that use dpkg never run a step at the same time."""
    script = sh("mkdir %s; sleep 0.05; rmdir %s", tmp_path / "alone", tmp_path / "alone")
    monkeypatch.setattr(scripting, "LOCK_DIR", str(tmp_path / "locks"))
    running = []
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, text in files(role(script, lock="dpkg"), "NONCE").items():
            (folder / name).write_text(text)
        environment = {**os.environ, "JOB": str(folder)}
        running.append(subprocess.Popen(["/bin/sh", folder / "run"], env=environment, stdout=subprocess.DEVNULL))
    assert [process.wait(timeout=30) for process in running] == [0, 0, 0, 0]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=60))
def test_a_log_reads_the_same_in_any_pieces(sizes):
    plan = role("a", "b")
    log = "NONCE begin 0\nü 1/2\n\nNONCE end 0 0 1500\nNONCE begin 1\nhalf\nNONCE end 9".encode()
    reader, at = LogReader(plan, "NONCE"), 0
    for size in [*sizes, len(log)]:
        reader.feed(log[at : at + size])
        at += size
    result = reader.result(137)
    assert [(step.number, step.status, step.duration_s) for step in result.steps] == [(0, 0, 1.5), (1, None, 0.0)]
    assert result.steps[1].output.startswith("half")


def test_progress_shows_the_last_line_as_a_terminal_would():
    reader = LogReader(role("a"), "NONCE")
    assert reader.feed(b"NONCE begin 0\n 10%\r 50%\r 99%\n").last_line == "99%"


def test_endless_output_is_kept_bounded():
    reader = LogReader(role("a"), "NONCE")
    reader.feed(b"NONCE begin 0\n")
    for _ in range(40):
        reader.feed(b"x" * 99 + b"\n" + b"y" * scripting.OUTPUT_CAP_BYTES)
    reader.feed(b"\nlast\n\nNONCE end 0 0 1\n")
    output = reader.results[0].output
    assert len(output) <= 2 * scripting.OUTPUT_CAP_BYTES
    assert output.endswith("last")


@pytest.mark.parametrize("text", ["NONCE begin 0 trailing", " NONCE begin 0", "NONCEbegin 0"])
def test_only_a_whole_line_is_a_marker(text):
    reader = LogReader(role("a"), "NONCE")
    assert reader.feed(text.encode() + b"\n").number is None


def test_what_a_step_makes_is_readable_by_all(tmp_path, monkeypatch):
    """The job's own files are 0600; a venv or a profile that a step makes must not be."""
    status, _ = run(role(sh("umask >%s", tmp_path / "umask")), tmp_path, monkeypatch)
    assert status == 0
    assert (tmp_path / "umask").read_text().strip() == "0022"
