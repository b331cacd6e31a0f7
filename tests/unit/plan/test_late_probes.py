"""Tests of hanging probes: each is ended on the host alone, the others are answered, and the result is not taken for a
no.
"""

from __future__ import annotations

import os
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hostwright.apply.journal.factfiles import load_facts, write_facts
from hostwright.apply.journal.redaction import Redactor
from hostwright.common.errors import HostError, NotAnswered
from hostwright.common.quoting import sh
from hostwright.common.untrusted import guarded
from hostwright.plan import probing
from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.host.occupancy import Occupancies, Occupancy
from hostwright.plan.model import Answer, Facts, Probe
from hostwright.plan.planning import NOT_ANSWERED, make_plan, plan_host
from hostwright.plan.probing import new_nonce, parse, programs
from hostwright.resources.files.files import Absent
from hostwright.stack.stack import Stack
from hostwright.transport.root.become import wrap
from tests.unit.support.hostjobs import until

SHORT_S = 8  #: limit for all probes; a quarter of it is the limit for one probe


def observe(*probes: Probe) -> Facts:
    """The facts. The test's user is root, or probes that need root are omitted."""
    nonce = new_nonce()
    program = wrap(*programs(probes, nonce, SHORT_S), password=None)
    done = subprocess.run(["/bin/sh"], input=program, capture_output=True, check=False, timeout=120)
    return parse(probes, nonce, done.stdout, "gpu01")


def alive(word: str) -> bool:
    """Whether a process has this word in its command line."""
    lines = (path for path in Path("/proc").glob("[0-9]*/cmdline"))
    return any(word.encode() in _read(path) for path in lines)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_each_probe_that_hangs_is_ended_by_itself_and_the_others_answer(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    mark = f"54321{os.getpid()}"  # unique to this test
    before, after = Probe("echo before"), Probe("echo after")
    opened = Probe(sh("echo some; cat %s; echo more", pipe))
    by_the_shell = Probe(sh("read -r line <%s", pipe))
    deaf = Probe(sh("trap '' TERM HUP INT; sh -c 'sleep '%s'; :' %s; echo", mark, tmp_path))
    facts = observe(before, opened, after, by_the_shell, Probe("echo 3"), deaf, Probe("echo last; exit 3"))
    assert facts[before] == Answer(0, "before\n")
    assert facts[after] == Answer(0, "after\n")
    assert facts[Probe("echo last; exit 3")] == Answer(3, "last\n")
    assert set(facts.late) == {opened, by_the_shell, deaf}
    assert facts.late[opened] == Answer(137, "some\n", late_s=2)
    until(lambda: not alive(mark), "what was killed ends")


def test_a_host_that_takes_long_gives_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """On standard error: standard output arrives in one piece, at the end."""
    monkeypatch.setattr(probing, "BEAT_S", 1)
    slow = [Probe("sleep 2.5; echo slow"), Probe("sleep 2.5; echo slow", root=True)]
    text = "\n".join(programs(slow, new_nonce()))
    done = subprocess.run(["/bin/sh"], input=text.encode(), capture_output=True, check=True, timeout=60)
    assert done.stderr.count(b".\n") >= 4
    assert done.stderr.replace(b".\n", b"") == b""


def test_a_look_that_is_soon_done_says_nothing_of_itself() -> None:
    done = subprocess.run(
        ["/bin/sh"], input=programs([Probe("echo")], new_nonce())[0].encode(), capture_output=True, check=True
    )
    assert done.stderr == b""


def test_shells_whose_child_is_ended_do_not_go_on_and_answer(tmp_path: Path):
    """A shell continues when its child is killed, unless it was stopped before. Its later output is not an answer."""
    nest = tmp_path / "nest.sh"
    nest.write_text(f'if [ "$1" = 0 ]; then sleep 98765{os.getpid()}; else sh "$0" $(($1 - 1)); fi\necho a lie\n')
    nested = Probe(sh("sh %s 24; echo a lie", nest))
    facts = observe(nested, Probe("echo after"))
    assert facts.late == {nested: Answer(137, "", late_s=2)}
    assert facts[Probe("echo after")] == Answer(0, "after\n")


def test_what_outlives_the_kill_and_holds_the_pipe_does_not_keep_the_look(tmp_path: Path):
    """For example, a driver's tool in uninterruptible sleep, or a daemon started by a tool."""
    mark = f"43210{os.getpid()}"
    held = Probe(f"(setsid sleep {mark} &); echo x; sleep 4321")
    try:
        facts = observe(held, Probe("echo after"))
        assert alive(mark), "it holds the pipe to the end"
        assert facts[Probe("echo after")] == Answer(0, "after\n")
        assert set(facts.late) == {held}
    finally:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            if mark.encode() in _read(path):
                os.kill(int(path.parent.name), 9)


def test_a_nap_that_does_not_hear_its_end_does_not_keep_the_look(tmp_path: Path):
    """A process that is killed between fork and exec loses the signal: the shell's handler takes it."""
    mark = f"0.00{os.getpid()}"  # extra seconds of its sleep, unique to this test
    deaf = tmp_path / "sleep"
    deaf.write_text(sh("#!/bin/sh\ntrap '' TERM; echo $$ >%s; exec /bin/sleep \"$1\" %s\n", tmp_path / "pid", mark))
    deaf.chmod(0o755)
    asleep = Probe(sh("until [ -s %s ]; do :; done; echo asleep", tmp_path / "pid"))
    program = programs([asleep], nonce := new_nonce())[0].encode()
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["/bin/sh"], input=program, capture_output=True, check=False, env=environment)
    assert alive(mark), "the look waited for it"
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert parse([asleep], nonce, done.stdout, "gpu01") == {asleep: Answer(0, "asleep\n")}


def test_a_process_cannot_name_itself_out_of_the_watch():
    """A line end in the name of a process forges a line in /proc/PID/stat."""
    forge = "import ctypes,sys;ctypes.CDLL(None).prctl(15,sys.argv[1].encode(),0,0,0);import time;time.sleep(60)"
    with subprocess.Popen(["python3", "-c", forge, "\n1 (x) S 1 1"]) as liar:
        try:
            facts = observe(Probe("sleep 987"), Probe("echo after"))
            assert liar.poll() is None, "nobody else's process is ended"
        finally:
            liar.kill()
    assert set(facts.late) == {Probe("sleep 987")}


def test_a_probe_that_ends_just_then_is_not_late():
    probes = (Probe("echo a"), Probe("echo b"))
    output = b"\nN  0\none\nN late 2\ntwo\nN 0 1\nb\n\nN 0 \n"
    facts = parse(probes, "N", output, "gpu01")
    assert (facts[probes[0]], facts[probes[1]]) == (Answer(0, "onetwo"), Answer(0, "b\n"))
    assert not facts.late


def test_a_probe_that_somebody_else_killed_has_its_status():
    probe = Probe("echo a")
    assert parse((probe,), "N", b"\nN  0\na\n\nN 137 \n", "gpu01")[probe] == Answer(137, "a\n")


MOTD = Absent("/etc/motd")
ASKED = MOTD.probes()[0]
STACK = Stack(name="house", distributions={"debian": ("12",)}, artifacts={})
DESIRED = Desired("gpu01", STACK, (DesiredRole("motd", (), (MOTD,)),))


def late() -> Facts:
    answers = {probe: Answer(1, "") for probe in DESIRED.probes()}
    return Facts({**answers, ASKED: Answer(137, "", late_s=40)})


def test_a_plan_names_what_was_not_answered_and_refuses_the_host():
    plan = make_plan(DESIRED, late())
    assert [(role.role, [change.rule for change in role.changes]) for role in plan.roles] == [
        ("preflight", [NOT_ANSWERED])
    ]
    (sentence,) = plan.refusals
    assert sentence.startswith("Absent of motd cannot be probed: a probe did not answer within 40 s: ")
    assert not plan.empty


def test_facts_that_are_kept_still_do_not_say_no(tmp_path: Path):
    path = tmp_path / "facts"
    write_facts(path, "gpu01", "2026-01-01T00:00:00+00:00", late(), Redactor(()))
    facts, _ = load_facts(path)
    assert make_plan(DESIRED, facts).refusals == make_plan(DESIRED, late()).refusals


def test_where_the_users_are_not_known_somebody_may_be_there():
    busy = Probe("who")
    kind = Occupancy((busy,), lambda facts: (facts[busy].strip(),), lambda facts: ((facts[busy].strip(), "again"),))
    facts = Facts({busy: Answer(137, "", late_s=40)})
    at_work = Occupancies((kind,)).at_work(facts, boots=True)
    assert at_work.gpus == ("unknown users (a probe did not answer within 40 s: who)",)
    assert at_work.others == at_work.gpus


def test_locks_that_are_not_known_are_a_note_and_an_error_of_that_host():
    facts = Facts({probe: Answer(137, "", late_s=40) for probe in DESIRED.probes()})
    (note, *_) = plan_host(DESIRED, facts, datetime.now(UTC)).notes
    assert note.startswith("its locks and drain state are unknown: a probe did not answer within 40 s")
    with pytest.raises(HostError, match=r"^gpu01: a probe did not answer within 40 s: who$"), guarded("gpu01"):
        raise NotAnswered("who", 40)
