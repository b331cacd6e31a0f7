"""A role's program, run by the real /bin/sh: its steps, what is tried again, what reaches the log."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path

import pytest

from hostwright.apply.jobs import scripting, transient
from hostwright.common.quoting import sh
from hostwright.plan.model import Change, RolePlan, Step
from tests.unit.support.hostjobs import run_steps, start_steps, until

DNS = "Temporary failure resolving 'mirror.example'"
ENOUGH_S = 6.0  #: for a step to print a line on a machine under load, where what comes then is its timeout


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks of our own, and waits of milliseconds."""
    monkeypatch.setattr(scripting, "LOCK_DIR", str(tmp_path / "locks"))
    monkeypatch.setattr(transient, "BACKOFF_S", 0.01)


def role(*scripts: str, **step) -> RolePlan:
    changes = tuple(Change(f"thing {n}", "no", "yes", (Step(script, **step),)) for n, script in enumerate(scripts))
    return RolePlan("cuda", (), changes)


def writing_to(log: Path) -> list[str]:
    """The names of the processes whose output goes to the job's log."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "fd/1").samefile(log):
                found.append((process / "comm").read_text().strip())
        except OSError:
            continue
    return found


def test_steps_run_in_order_and_their_output_is_theirs(tmp_path):
    result = run_steps(role("echo one", sh("printf '%%s\\n' %s", "it's $(two)"), lock="dpkg"), tmp_path)
    assert result.status == 0
    assert [(step.what, step.status, step.output, step.tries) for step in result.steps] == [
        ("thing 0", 0, "one", 1),
        ("thing 1", 0, "it's $(two)", 1),
    ]


def test_whoever_holds_dpkgs_lock_is_named_once_while_the_step_waits(tmp_path, monkeypatch):
    lock = tmp_path / "dpkg-lock"
    lock.touch()
    monkeypatch.setattr(scripting, "APT_LOCKS", (str(lock),))
    folder = tmp_path / "job"
    with lock.open("r+") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        waiting = start_steps(role(sh("until [ -e %s ]; do sleep 0.1; done", tmp_path / "go"), lock="dpkg"), folder)
        until(lambda: b" waits 0 " in (folder / "log").read_bytes(), "the holder is named")
        (tmp_path / "go").touch()
        assert waiting.wait(timeout=60) == 0
    lines = [line for line in (folder / "log").read_text().splitlines() if " waits " in line]
    name = Path("/proc/self/comm").read_text().strip()
    assert lines == [f"NONCE waits 0 dpkg's lock, held by {name} (pid {os.getpid()})"]


def test_a_step_that_holds_the_lock_itself_waits_for_nobody(tmp_path, monkeypatch):
    lock = tmp_path / "dpkg-lock"
    lock.touch()
    monkeypatch.setattr(scripting, "APT_LOCKS", (str(lock),))
    program = f"import fcntl, time; f = open({str(lock)!r}, 'r+'); fcntl.lockf(f, fcntl.LOCK_EX); time.sleep(6)"
    folder = tmp_path / "job"
    assert start_steps(role(sh("python3 -c %s", program), lock="dpkg"), folder).wait(timeout=60) == 0
    assert " waits " not in (folder / "log").read_text()


def test_nothing_of_the_watch_for_locks_outlives_its_step(tmp_path, monkeypatch):
    made = scripting.runner
    longer = ("for pause in 2 ", "for pause in 600 ")  # a pause that would be seen long after the step
    assert longer[0] in made(role("true"), "N")
    monkeypatch.setattr(scripting, "runner", lambda *given: made(*given).replace(*longer))
    folder = tmp_path / "job"

    waiting = start_steps(
        role(sh("until [ -e %s ]; do read -r _ </proc/uptime; done", tmp_path / "go"), lock="dpkg"), folder
    )
    until(lambda: "sleep" in writing_to(folder / "log"), "the watch pauses")
    (tmp_path / "go").touch()
    assert waiting.wait(timeout=60) == 0
    until(lambda: not writing_to(folder / "log"), "the pause ends with the step")


def test_a_watch_that_no_signal_reaches_keeps_no_lock_and_ends(tmp_path, monkeypatch):
    """dash forgets a signal that comes while it forks."""
    made = scripting.runner
    signal_ = 'kill "$watching"'
    assert signal_ in made(role("true"), "N")
    monkeypatch.setattr(scripting, "runner", lambda *given: made(*given).replace(signal_, ': "$watching"'))
    folder = tmp_path / "job"
    assert start_steps(role("true", lock="dpkg"), folder).wait(timeout=60) == 0

    assert writing_to(folder / "log"), "the watch is not told"
    with (tmp_path / "locks/dpkg.lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    until(lambda: not writing_to(folder / "log"), "the watch sees that the step has ended")


def test_the_first_failure_ends_the_role(tmp_path):
    result = run_steps(
        role("echo fine", "echo bad >&2; false; echo not here", sh("touch %s", tmp_path / "never")), tmp_path
    )
    assert result.status == 1
    assert [(step.number, step.status, step.output) for step in result.steps] == [(0, 0, "fine"), (1, 1, "bad")]
    assert not (tmp_path / "never").exists()


def test_a_change_that_stands_alone_fails_alone(tmp_path):
    steps = (Step("echo bad; exit 7"), Step(sh("touch %s", tmp_path / "never")))
    plan = role("echo first", "echo last")
    alone = Change("alone", "no", "yes", steps, alone=True)
    result = run_steps(RolePlan("cuda", (), (plan.changes[0], alone, plan.changes[1])), tmp_path)
    assert result.status == 7
    assert [(step.what, step.status, step.output) for step in result.steps] == [
        ("thing 0", 0, "first"), ("alone", 7, "bad"), ("thing 1", 0, "last"),
    ]  # fmt: skip
    assert not (tmp_path / "never").exists()  # its own further steps are not tried


def test_a_step_is_ended_at_its_timeout(tmp_path):
    assert run_steps(role("sleep 60", timeout_s=0.2), tmp_path).status == 124


def test_a_step_cannot_swallow_the_steps_after_it(tmp_path):
    result = run_steps(role("cat", "echo second"), tmp_path)
    assert (result.status, result.steps[1].output) == (0, "second")


def test_a_held_lock_is_waited_for(tmp_path):
    """Two roles that use dpkg never run a step at the same time."""
    script = sh("mkdir %s; sleep 0.05; rmdir %s", tmp_path / "alone", tmp_path / "alone")
    running = [start_steps(role(script, lock="dpkg"), tmp_path / str(number)) for number in range(4)]
    assert [process.wait(timeout=60) for process in running] == [0, 0, 0, 0]


def test_a_lock_is_nobodys_to_hold_but_roots(tmp_path):
    """flock(2) needs no more than a file that can be read; one of an earlier version is closed, too."""
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "apt.lock").touch(0o644)
    for lock in ("dpkg", "apt"):
        assert run_steps(role("true", lock=lock), tmp_path / lock).status == 0
        assert (tmp_path / "locks" / f"{lock}.lock").stat().st_mode & 0o777 == 0o600


def test_what_a_step_makes_is_readable_by_all(tmp_path):
    """The job's own files are 0600; a venv or a profile that a step makes must not be."""
    assert run_steps(role(sh("umask >%s", tmp_path / "umask")), tmp_path).status == 0
    assert (tmp_path / "umask").read_text().strip() == "0022"


# What is run again


def counting(folder: Path, *tries: str) -> str:
    """A script that does another of ``tries`` each time it is run; the last one from then on."""
    cases = "".join(f"{number}) {script};; " for number, script in enumerate(tries[:-1], 1))
    return (
        sh("echo x >>%s; n=$(wc -l <%s); case $n in ", folder / "count", folder / "count")
        + f"{cases}*) {tries[-1]};; esac"
    )


def count(folder: Path) -> int:
    return len((folder / "count").read_text().splitlines())


def test_what_passes_by_itself_is_tried_again(tmp_path):
    script = counting(
        tmp_path,
        f'echo "one: {DNS}"; exit 100',
        "echo 'E: Could not get lock /var/lib/apt/lists/lock'; exit 9",
        "echo got it",
    )
    result = run_steps(role(script, "echo after", tries=4), tmp_path)
    assert (result.status, count(tmp_path)) == (0, 3)
    step = result.steps[0]
    assert (step.status, step.tries) == (0, 3)
    said = [line for line in step.output.splitlines() if line and not line.startswith("hostwright:")]
    assert said == [f"one: {DNS}", "E: Could not get lock /var/lib/apt/lists/lock", "got it"]
    assert (result.steps[1].output, result.steps[1].tries) == ("after", 1)


def test_a_step_is_tried_no_more_often_than_it_may(tmp_path):
    result = run_steps(role(counting(tmp_path, f'echo "{DNS}" >&2; exit 7'), tries=3), tmp_path)
    assert (result.status, count(tmp_path), result.steps[0].status, result.steps[0].tries) == (7, 3, 7, 3)


@pytest.mark.parametrize(
    ("script", "tries", "status"),
    [
        ("echo 'make: *** [all] Error 2'; exit 2", 5, 2),
        (f'echo "{DNS}"; exit 100', 1, 100),
        (f'echo "{DNS}"; echo "tar: write: No space left on device"; exit 2', 5, 2),
        ("echo nothing of it; sleep 60", 5, 124),
        (f'echo "{DNS}"', 5, 0),
        (f'echo "{DNS}"; head -c 100000 /dev/zero | tr "\\0" "\\n"; exit 3', 5, 3),
    ],
    ids=["a failure that lasts", "one try only", "a full disk", "a timeout", "no failure", "words of long ago"],
)
def test_nothing_else_is_tried_again(tmp_path, script, tries, status):
    limit_s = ENOUGH_S if status == 124 else 60
    result = run_steps(role(counting(tmp_path, script), tries=tries, timeout_s=limit_s), tmp_path)
    assert (result.status, count(tmp_path), result.steps[0].tries) == (status, 1, 1)


def test_a_timeout_is_tried_again_when_its_output_says_why(tmp_path):
    script = counting(tmp_path, f'echo "{DNS}"; sleep 60', "echo fine")
    result = run_steps(role(script, tries=2, timeout_s=ENOUGH_S), tmp_path)
    assert (result.status, count(tmp_path)) == (0, 2)


def test_each_try_is_judged_by_its_own_output(tmp_path):
    """The words of an earlier try stand in the same log."""
    result = run_steps(role(counting(tmp_path, f'echo "{DNS}"; exit 100', "echo broken; exit 5"), tries=9), tmp_path)
    assert (result.status, count(tmp_path), result.steps[0].tries) == (5, 2, 2)


def test_the_lock_is_free_while_a_step_waits(tmp_path, monkeypatch):
    """Nobody shall wait for dpkg because a mirror is away."""
    monkeypatch.setattr(transient, "BACKOFF_S", 600.0)
    waiting = start_steps(role(f'echo "{DNS}"; exit 100', lock="dpkg", tries=2), tmp_path / "a")
    try:
        until(lambda: b"NONCE retry 1" in (tmp_path / "a/log").read_bytes(), "the retry")
        assert run_steps(role("echo quick", lock="dpkg"), tmp_path / "b").status == 0
        assert waiting.poll() is None
    finally:
        waiting.kill()
        waiting.wait()


def test_the_waits_double_to_their_bound_and_differ(tmp_path, monkeypatch):
    monkeypatch.setattr(transient, "BACKOFF_MAX_S", 0.04)
    run_steps(role(f'echo "{DNS}"; exit 100', tries=6), tmp_path)
    waits = [float(line.split()[-1]) for line in (tmp_path / "log").read_text().splitlines() if " retry " in line]
    assert len(waits) == 5
    for wait_s, least_s in zip(waits, [0.01, 0.02, 0.04, 0.04, 0.04], strict=True):
        assert least_s <= wait_s <= least_s * 1.5 + 0.001


# What reaches the log


def printed(byte: int, bytes_: int) -> str:
    return sh("head -c %s /dev/zero | tr '\\0' %s", bytes_, chr(byte))


@pytest.mark.parametrize("more", [-1, 0, 1, 100_000])
def test_the_output_of_a_step_is_capped_exactly(tmp_path, monkeypatch, more):
    """Up to the cap all of it; of more the beginning and the end, which says what went wrong."""
    cap = 200_000
    monkeypatch.setattr(scripting, "STEP_CAP_BYTES", cap)
    script = f"{printed(97, cap + more - 5)}; echo; echo end; {sh('touch %s', tmp_path / 'done')}; exit 3"
    result = run_steps(role(script), tmp_path)
    body = (tmp_path / "log").read_bytes().partition(b"NONCE begin 0\n")[2].rpartition(b"\nNONCE end")[0]
    above, notice, below = body.partition(
        b"\nhostwright: 200000 bytes of this output are kept: those above, and its last 65536:\n"
    )
    assert above + below == b"a" * (min(cap, cap + more) - 5) + b"\nend\n"
    assert len(below) == (scripting.END_BYTES if notice else 0)
    assert bool(notice) == (more > 0)
    assert (result.status, result.steps[0].output.splitlines()[-1]) == (3, "end")
    assert (tmp_path / "done").exists(), "it was not stopped"


def test_a_long_log_keeps_less_of_each_step(tmp_path, monkeypatch):
    monkeypatch.setattr(scripting, "JOB_CAP_BYTES", 500_000)
    result = run_steps(role(*[printed(97, 400_000)] * 5), tmp_path)
    assert result.status == 0
    assert 800_000 + 3 * 131_072 <= (tmp_path / "log").stat().st_size < 800_000 + 3 * 131_072 + 1000


def test_all_tries_together_stay_below_the_cap(tmp_path, monkeypatch):
    monkeypatch.setattr(scripting, "STEP_CAP_BYTES", 400_000)
    result = run_steps(role(f'{printed(97, 300_000)}; echo; echo "{DNS}"; exit 1', tries=3), tmp_path)
    assert result.steps[0].tries == 3
    assert 390_000 < (tmp_path / "log").stat().st_size < 401_000
    assert len(result.steps[0].output) <= 2 * scripting.OUTPUT_CAP_BYTES


def test_many_tries_leave_room_for_the_end_of_each(tmp_path, monkeypatch):
    monkeypatch.setattr(scripting, "STEP_CAP_BYTES", 400_000)
    result = run_steps(
        role(counting(tmp_path, f'{printed(97, 200_000)}; echo; echo "{DNS}"; exit 1', "exit 9"), tries=99), tmp_path
    )
    assert (result.status, result.steps[0].tries) == (9, 2)
    assert 131_072 <= (tmp_path / "log").stat().st_size < 132_000


def test_all_output_is_in_the_log_before_the_step_ends(tmp_path):
    result = run_steps(role(*[f"{printed(97, 200_000)}; echo; echo last {number}" for number in range(20)]), tmp_path)
    assert [step.output.splitlines()[-1] for step in result.steps] == [f"last {number}" for number in range(20)]
    assert {len(step.output) for step in result.steps} == {200_007, 200_008}


def test_a_full_disk_neither_ends_nor_hangs_a_step(tmp_path):
    script = f"{printed(97, 6_000_000)}; echo said; {sh('touch %s', tmp_path / 'done')}"
    assert start_steps(role(script, "echo more"), tmp_path / "job", to=Path("/dev/full")).wait(timeout=60) == 0
    assert (tmp_path / "done").exists()


def test_background_processes_neither_hang_nor_die_with_a_step(tmp_path):
    """A daemon that holds the pipe: it goes on printing after the end of its step, and of the job."""
    pid, beat, log = tmp_path / "pid", tmp_path / "beat", tmp_path / "log"
    daemon = sh("echo $$ >%s; while echo noise; do touch %s; sleep 0.02; done", pid, beat)
    script = sh("echo started; sh -c %s & until [ -e %s ] && grep -q noise %s; do sleep 0.01; done", daemon, beat, log)
    result = run_steps(role(script, "echo second", "echo third", lock="dpkg"), tmp_path)
    last = beat.stat().st_mtime_ns
    try:
        until(lambda: beat.stat().st_mtime_ns > last, "a sign of the daemon after the job's end")
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)
    assert [(step.status, step.output) for step in result.steps[1:]] == [(0, "second"), (0, "third")]
    assert result.steps[0].output.startswith("started\nnoise\n")
    assert "what it prints from here on is not kept" in result.steps[0].output


def test_what_a_step_leaves_behind_does_not_keep_its_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(scripting, "LOCK_WAIT_S", 0)
    script = sh("sleep 300 >/dev/null 2>&1 & echo $! >%s", tmp_path / "pid")
    result = run_steps(role(script, "echo second", lock="dpkg"), tmp_path)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert (result.status, result.steps[-1].output) == (0, "second")
