"""One host through its plan, with this machine's own /bin/sh in the place of the host: rounds, failures, reboots."""

from __future__ import annotations

import fcntl
import math
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hostwright import inventory
from hostwright.apply import events
from hostwright.apply.host import applying
from hostwright.apply.host.applying import HostApply, HostJob
from hostwright.apply.jobs import scripting
from hostwright.apply.journal.redaction import Redactor
from hostwright.apply.run import Agreed
from hostwright.common.errors import (
    Acceptance,
    Examination,
    InputError,
    Locked,
    NotAccepted,
    NotConverged,
    ProtocolError,
    Refused,
    SeveralFailed,
    StepFailed,
    Stopped,
    Unanswered,
    UnitJournal,
    Unreachable,
)
from hostwright.common.quoting import sh
from hostwright.common.request import Request
from hostwright.common.secret import Secret
from hostwright.plan import desired
from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.host import drained as hostdrained
from hostwright.plan.host import jobs as hostjobs
from hostwright.plan.host import locks, newrelease, release
from hostwright.plan.host.occupancy import Occupancies
from hostwright.plan.model import Change, Deferred, Facts, Planned, Probe, Reboot, Refusal, Resource, Step
from hostwright.resources import originals
from hostwright.transport import Output
from hostwright.transport.root.rootshell import RootShell
from tests.places import INVENTORY
from tests.unit.support.hostjobs import altered, until
from tests.unit.support.known import KNOWN
from tests.unit.support.runs import run_of, target_of
from tests.unit.support.stacks import load_stack

STACK = load_stack("tensorflow-2.9", [INVENTORY / "stacks"])


@dataclass(frozen=True)
class Flag(Resource):
    """A file that shall be there; ``script`` is how it comes."""

    path: str
    script: str
    after: str = ""  #: a file without which nothing can be known yet
    reboot: str = ""
    refusal: str = ""
    alone: bool = False
    lock: str = ""

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(sh("test -e %s", self.path)), Probe(sh("test -z %s || test -e %s", self.after, self.after)))

    def plan(self, facts: Facts) -> Planned | None:
        here, known = (facts[probe].ok for probe in self.probes()[:2])
        if here:
            return None
        if not known:
            return Deferred(self.path, "absent", "there", self.after)
        if self.refusal:
            return Refusal(self.path, "absent", "there", "forbidden", self.refusal, self.alone)
        if self.reboot:
            return Reboot(self.path, "absent", "there", self.reboot)
        return Change(self.path, "absent", "there", (Step(self.script, self.lock),), alone=self.alone)

    def removal(self) -> tuple[Resource, ...]:
        return ()


class LocalSession:
    """Runs what a host would run, here, and counts."""

    def __init__(self, breaks: tuple[int, ...] = ()) -> None:
        self.host = inventory.Host("gpu01")
        self.execs = 0
        self.noise, self.noise_note = b"", ""
        self.breaks = breaks  #: the execs that find the connection gone

    def run(
        self, command: str, *, stdin: bytes, timeout_s: float, idle_s=None, cap_bytes: int = 0, on_stdout=None, name=""
    ) -> Output:
        self.execs += 1
        if self.execs in self.breaks:
            raise Unreachable("gpu01", "the connection was lost", passing=True)
        done = subprocess.run(
            ["/bin/sh", "-c", command], input=stdin, capture_output=True, timeout=timeout_s, check=False
        )
        if on_stdout:
            on_stdout(done.stdout)
        return Output(done.returncode, done.stdout, done.stderr, False, 0.0)

    def close(self) -> None:
        """Nothing to close."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Jobs and locks below ``tmp_path``, no sudo, no systemd, and rules that refuse nothing; no host is locked."""
    monkeypatch.setattr(HostApply, "_lock_host", lambda self: 0.0)
    monkeypatch.setattr(hostjobs, "JOBS_DIR", str(tmp_path / "var" / "jobs"))
    running = Probe(hostjobs.RUNNING.script.replace(hostjobs.JOBS_DIR, str(tmp_path / "var" / "jobs")))
    engine = (*desired.HOST_PROBES, running, locks.LOCK, locks.RUN_LOCK, hostdrained.DRAINED)
    monkeypatch.setattr(hostjobs, "RUNNING", running)
    monkeypatch.setattr(desired, "ENGINE_PROBES", (*engine, release.RELEASE))
    # this machine's own GPUs and containers are not at work here
    monkeypatch.setattr(Occupancies, "users", lambda self, facts: ())
    monkeypatch.setattr(newrelease, "renewed", lambda desired, before, run: None)
    monkeypatch.setattr(originals, "RECORD", originals.RECORD.replace(originals.ORIGIN, str(tmp_path / "origin")))
    altered(monkeypatch, "start_script", "/run/systemd/system", str(tmp_path / "no-systemd"))
    monkeypatch.setattr(scripting, "LOCK_DIR", str(tmp_path / "locks"))
    monkeypatch.setattr("hostwright.plan.planning.check_host", lambda *asked: [])
    plainly = lambda user, root, password, **_: f"{user}\n{root}".encode()  # noqa: E731
    monkeypatch.setattr("hostwright.transport.root.rootshell.wrap", plainly)
    return tmp_path


def host(
    said: list[events.Event],
    session: LocalSession | None = None,
    more: dict[str, Any] | None = None,
    job: dict[str, Any] | None = None,
    local: bool = False,
    **roles: tuple[tuple[str, ...], Flag],
) -> HostApply:
    """``more`` are values of the run, ``job`` those of its job on the host."""
    desired = Desired("gpu01", STACK, tuple(DesiredRole(name, needs, (flag,)) for name, (needs, flag) in roles.items()))
    given = {"emit": said.append, "explain": KNOWN.explained, **(more or {})}
    run = run_of(lambda: RootShell(session or LocalSession()), **given)
    target = target_of(desired, connection="local" if local else "ssh")
    return HostApply(run, HostJob(target, desired, **(job or {})))


def touch(path: Path, **more: Any) -> Flag:
    return Flag(str(path), sh("touch %s", path), **more)


def test_of_roles_that_wait_for_a_lock_the_one_with_the_most_behind_it_gets_it(place: Path):
    locks = Path(scripting.LOCK_DIR)
    locks.mkdir()

    def writes(name: str) -> Flag:
        path = place / name
        return Flag(str(path), sh("echo %s >>%s; touch %s", name, place / "order", path), lock="dpkg")

    past = {("slow", str(place / "slow"), 0): 60.0, ("after", str(place / "after"), 0): 100.0}
    more = {"past": SimpleNamespace(of=lambda _: past)}
    one = host(
        [],
        more=more,
        quick=((), writes("quick")),
        slow=((), writes("slow")),
        chain=((), writes("chain")),
        after=(("chain",), writes("after")),
    )
    with (locks / "dpkg.lock").open("w") as file, ThreadPoolExecutor() as pool:
        fcntl.flock(file, fcntl.LOCK_EX)
        applied = pool.submit(one.apply)
        until(lambda: applied.done() or len([*locks.glob("dpkg.queue/[0-9]*")]) == 3, "three roles wait")
        file.close()
        assert applied.result().changed
    waited = [name for name in (place / "order").read_text().split() if name != "after"]  # it waited for no lock
    assert waited == ["chain", "slow", "quick"]


def test_how_long_steps_took_is_asked_only_where_roles_can_wait_for_each_other(place: Path):
    asked: list[str] = []
    more = {"past": SimpleNamespace(of=lambda stack: asked.append(stack) or {})}
    host([], more=more, base=((), touch(place / "a"))).apply()
    assert asked == []
    host([], more=more, base=((), touch(place / "b")), cuda=((), touch(place / "c"))).apply()
    assert asked == [STACK.name]


def test_what_differs_is_done_and_a_second_look_decides(place: Path):
    session = LocalSession()
    one = host([], session, base=((), touch(place / "a")), cuda=(("base",), touch(place / "b")))
    outcome = one.apply()
    assert outcome.left is not None
    assert outcome.left.empty
    assert {result.role for result in outcome.results} == {"base", "cuda"}
    assert outcome.changed
    assert session.execs == 2 + 1 + 2 * 2 + 1, "two looks, what was there before, start and watch of each role, a look"


def test_a_host_as_desired_costs_one_look(place: Path):
    (place / "a").touch()
    session = LocalSession()
    assert not host([], session, base=((), touch(place / "a"))).apply().changed
    assert session.execs == 1


def test_what_could_not_be_known_is_done_in_the_next_round(place: Path):
    later = touch(place / "b", after=str(place / "a"))
    outcome = host([], base=((), touch(place / "a")), driver=((), later)).apply()
    assert [result.role for result in outcome.results] == ["base", "driver"]
    assert (place / "b").exists()


def test_a_step_that_changes_nothing_is_an_error_that_names_it(place: Path):
    with pytest.raises(NotConverged, match=r"base: .*/a"):
        host([], base=((), Flag(str(place / "a"), "true"))).apply()


def test_what_a_step_notes_is_shown_though_nothing_failed(place: Path):
    said: list[events.Event] = []
    noting = Flag(str(place / "a"), sh("echo 'hostwright: note: theirs is broken'; touch %s", place / "a"))
    assert host(said, base=((), noting)).apply().changed
    assert "base: theirs is broken" in [event.text for event in said if isinstance(event, events.Note)]


def test_what_a_step_says_that_it_failed_for_is_the_headline(place: Path):
    """Not the first known message in its output, which may be about something that nobody needs."""
    text = (
        "W: EXPKEYSIG\nhostwright: note: EXPKEYSIG\nhostwright: error: apt could not fetch ours: 404  Not Found\nE: end"
    )
    broken = Flag(str(place / "a"), sh("printf '%%s\\n' %s; exit 100", text))
    with pytest.raises(StepFailed) as caught:
        host([], base=((), broken)).apply()
    assert "ended with status 100: apt could not fetch ours: 404  Not Found. a file is no longer at" in str(
        caught.value
    )


def test_errors_of_one_cause_share_its_sentence(place: Path):
    errors = "".join(f"hostwright: error: apt could not fetch {n}: 404  Not Found\n" for n in "abcd")
    with pytest.raises(StepFailed) as caught:
        host([], base=((), Flag(str(place / "a"), sh("printf %%s %s; exit 1", errors)))).apply()
    text = str(caught.value)
    assert "fetch a: 404  Not Found; apt could not fetch b: 404  Not Found; apt could not fetch c" in text
    assert text.count("no longer at its address") == 1
    assert " (and 1 more); " in text


def test_a_failed_step_says_what_it_printed_and_stops_what_needs_it(place: Path):
    said: list[events.Event] = []
    broken = Flag(str(place / "a"), "echo first; echo 'E: it broke' >&2; exit 9")
    with pytest.raises(StepFailed, match="E: it broke") as caught:
        host(said, cuda=((), broken), cudnn=(("cuda",), touch(place / "b")), other=((), touch(place / "c"))).apply()
    step = caught.value.step
    assert (step.role, step.status, step.tail) == ("cuda", 9, ("first", "E: it broke"))
    assert not (place / "b").exists()
    assert (place / "c").exists(), "what does not need it goes on"
    notes = [event.text for event in said if isinstance(event, events.Note)]
    assert notes == ["the role cudnn was skipped, because cuda failed"]


def test_a_known_failure_is_told_with_its_cure(place: Path):
    full = Flag(str(place / "a"), "echo 'tar: x: Cannot write: No space left on device'; exit 2")
    with pytest.raises(StepFailed) as caught:
        host([], base=((), full)).apply()
    assert "space" in caught.value.sentence
    assert "Cannot write" not in caught.value.sentence, "the cause and the cure, not the message"


def test_a_host_that_failed_is_asked_once_for_known_problems(place: Path):
    asked, said = [], []
    found = Examination((), "no known problem found on the host (3 signs searched for)")
    bad = Flag(str(place / "a"), "echo no; exit 3")

    def examine(shell: RootShell, units: tuple[str, ...]) -> Examination:
        asked.append(shell)
        return found

    session = LocalSession()
    with pytest.raises(StepFailed) as failure:
        host(said, session, {"examine": examine}, base=((), bad)).apply()
    assert failure.value.examination == found
    assert [shell.session for shell in asked] == [session], "over the same connection"
    assert [event.why for event in said if isinstance(event, events.Explained)] == [found.sentence]


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (Unreachable("gpu01", "connection lost"), "connection lost"),
        (InputError("a rule is defined twice"), "a rule is defined twice"),
        (RuntimeError("oops"), "internal error: RuntimeError: oops"),
    ],
)
def test_a_host_that_cannot_be_asked_says_so_and_fails_as_it_did(place: Path, trouble: Exception, said: str):
    def examine(shell: RootShell, units: tuple[str, ...]) -> Examination:
        raise trouble

    bad = Flag(str(place / "a"), "echo no; exit 3")
    with pytest.raises(StepFailed, match="ended with status 3") as failure:
        host([], None, {"examine": examine}, base=((), bad)).apply()
    assert failure.value.examination is not None
    assert failure.value.examination.sentence.startswith(f"the check for known problems failed: {said}")
    assert failure.value.sentence.endswith("; next: `invoke runs.show --run run --hosts gpu01 --steps`")


def test_the_journal_to_which_a_step_points_is_asked_for_and_told_without_secrets(place: Path):
    asked: list[tuple[str, ...]] = []

    def examine(shell: RootShell, units: tuple[str, ...]) -> Examination:
        asked.append(units)
        return Examination(
            (), "nothing", (UnitJournal("a.service", "a.service", ("no room for it",), "no room for it"),)
        )

    lines = ("token hunter2hunter2", "Job for a.service failed.", 'See "journalctl -xe" for details.')
    script = "\n".join(sh("echo %s", line) for line in lines) + "\nexit 3"
    more = {"examine": examine, "redactor": Redactor((Secret("hunter2hunter2"),))}
    with pytest.raises(StepFailed) as failure:
        host([], None, more, base=((), Flag(str(place / "a"), script))).apply()
    assert asked == [("a.service",)]
    assert "ended with status 3: Job for a.service failed; a.service says: no room for it; next: " in str(failure.value)
    assert failure.value.step.tail[0] == "token ***"
    with pytest.raises(StepFailed, match=r"a\.service says: no room for it$"):  # a rebuild, which goes on by itself
        host([], None, more, {"rebuilds": True}, base=((), Flag(str(place / "b"), script))).apply()


def test_all_roles_that_failed_are_named(place: Path):
    bad = {name: ((), Flag(str(place / name), f"echo {name} broke; exit 1")) for name in ("cuda", "container")}
    with pytest.raises(SeveralFailed, match=r"cuda broke.*|container broke.*") as caught:
        host([], **bad).apply()
    assert len(caught.value.errors) == 2


def test_a_refusal_keeps_the_whole_host_untouched(place: Path):
    refused = touch(place / "b", refusal="a process uses the GPU; end it")
    with pytest.raises(Refused, match="a process uses the GPU"):
        host([], base=((), touch(place / "a")), driver=((), refused)).apply()
    assert not (place / "a").exists()


def test_what_is_refused_alone_is_told_when_the_rest_is_done(place: Path):
    refused = touch(place / "b", refusal="there is no image of that name", alone=True)
    with pytest.raises(Refused, match=r"^gpu01: there is no image of that name$"):
        host([], base=((), touch(place / "a")), driver=((), refused)).apply()
    assert (place / "a").exists()
    with pytest.raises(Refused, match="no image of that name"):  # and where nothing else is to do, at once
        host([], base=((), touch(place / "a")), driver=((), refused)).apply()


def test_beside_another_refusal_one_that_stands_alone_is_told_with_it(place: Path):
    alone = touch(place / "b", refusal="there is no image", alone=True)
    whole = touch(place / "c", refusal="the kernel does not fit")
    with pytest.raises(Refused, match="there is no image; the kernel does not fit"):
        host([], base=((), touch(place / "a")), driver=((), alone), cuda=((), whole)).apply()
    assert not (place / "a").exists()


def test_a_change_that_fails_alone_stops_no_role_that_needs_its_own(place: Path):
    said: list[events.Event] = []
    bad = Flag(str(place / "a"), "echo 'E: it broke'; exit 9", alone=True)
    with pytest.raises(StepFailed, match="E: it broke"):
        host(said, cuda=((), bad), cudnn=(("cuda",), touch(place / "b"))).apply()
    assert (place / "b").exists()
    assert not [event for event in said if isinstance(event, events.Note)]


def test_a_change_that_fails_alone_stops_nothing_that_only_becomes_known_later(place: Path):
    tries = place / "tries"
    bad = Flag(str(place / "a"), f"echo once >>{tries}; echo 'E: it broke'; exit 9", alone=True)
    waits = touch(place / "c", after=str(place / "b"))
    with pytest.raises(StepFailed, match="E: it broke"):
        host([], base=((), bad), cuda=((), touch(place / "b")), cudnn=((), waits)).apply()
    assert (place / "c").exists()
    assert tries.read_text() == "once\n"  # it is not tried again in the second round


def test_beside_a_change_that_failed_alone_nothing_is_done_twice_and_no_host_is_rebooted(place: Path):
    bad = Flag(str(place / "a"), "echo 'E: it broke'; exit 9", alone=True)
    vain = Flag(str(place / "b"), f"echo once >>{place / 'tries'}")
    wants = Flag(str(place / "c"), "true", reboot="module 460 is loaded, 470 installed")
    with pytest.raises(StepFailed, match="E: it broke"):
        host([], base=((), bad), cuda=((), vain), driver=((), wants)).apply()
    assert (place / "tries").read_text() == "once\n"


def test_a_change_that_failed_alone_hides_no_refusal_beside_it(place: Path):
    bad = Flag(str(place / "a"), "echo 'E: it broke'; exit 9", alone=True)
    refused = touch(place / "b", refusal="there is no GPU 7", alone=True)
    with pytest.raises(SeveralFailed) as caught:
        host([], base=((), bad), driver=((), refused)).apply()
    failed, refusal = caught.value.errors
    assert isinstance(failed, StepFailed)
    assert isinstance(refusal, Refused)
    assert str(refusal).startswith("gpu01: there is no GPU 7; next: ")


def test_a_role_that_failed_hides_no_refusal_beside_it(place: Path):
    bad = Flag(str(place / "a"), "echo 'E: it broke'; exit 9")
    refused = touch(place / "b", refusal="there is no GPU 7", alone=True)
    with pytest.raises(SeveralFailed, match=r"2 failures: .*E: it broke; next: .* · there is no GPU 7"):
        host([], base=((), bad), driver=((), refused)).apply()


def test_a_refusal_that_becomes_known_later_hides_no_failure_before_it(place: Path):
    """The second round is refused: what failed alone in the first is told all the same, and the refusal once."""
    bad = Flag(str(place / "a"), "echo 'E: it broke'; exit 9", alone=True)
    refused = touch(place / "c", after=str(place / "b"), refusal="the kernel does not fit")
    later = touch(place / "d", after=str(place / "b"))
    with pytest.raises(SeveralFailed) as caught:
        host([], base=((), bad), cuda=((), touch(place / "b")), driver=((), refused), cudnn=((), later)).apply()
    assert [type(error) for error in caught.value.errors] == [Refused, StepFailed]
    assert str(caught.value).count("the kernel does not fit") == 1
    assert not (place / "d").exists()


def test_what_waits_says_for_what_when_nothing_more_can_be_done(place: Path):
    waits = touch(place / "b", after=str(place / "never"))
    with pytest.raises(NotConverged, match=r"base: \S+/b \(absent; known after \S+/never\)"):
        host([], base=((), waits)).apply()


def test_a_reboot_that_is_not_allowed_is_left_pending_and_seen(place: Path):
    wants = Flag(str(place / "a"), "true", reboot="module 460 is loaded, 470 installed")
    outcome = host([], more={"request": Request(no_reboot=True)}, driver=((), wants)).apply()
    assert outcome.left is not None
    assert outcome.left.reboot == "module 460 is loaded, 470 installed"
    assert outcome.reboots == 0


def test_the_machine_that_hostwright_runs_on_is_never_rebooted_from_itself(place: Path, monkeypatch):
    wants = Flag(str(place / "a"), "true", reboot="nouveau is bound")
    monkeypatch.setattr(applying, "reboot", lambda *_, **__: pytest.fail("it was rebooted"))
    said: list[events.Event] = []
    outcome = host(said, local=True, base=((), touch(place / "b")), driver=((), wants)).apply()
    assert (place / "b").exists(), "all else is done"
    assert (outcome.word, outcome.reboots) == ("pending", 0)
    notes = [event.text for event in said if isinstance(event, events.Note)]
    assert notes == [
        "this machine needs a reboot (nouveau is bound), and Hostwright never reboots the machine on which it runs; "
        "reboot it, then run the same command again"
    ]


def test_a_reboot_is_done_once_and_looked_at_again(place: Path, monkeypatch: pytest.MonkeyPatch):
    wants = Flag(str(place / "a"), "true", reboot="nouveau is bound")
    reasons: list[str] = []

    def boot(shell, connect, *, timeout_s, reason, emit):
        reasons.append(reason)
        (place / "a").touch()
        return connect(), 1.5

    monkeypatch.setattr(applying, "reboot", boot)
    outcome = host([], base=((), wants)).apply()
    assert reasons == ["nouveau is bound"]
    assert (outcome.reboots, outcome.left.empty) == (1, True)


@dataclass(frozen=True)
class Module(Flag):
    """A module that is installed by a step and loaded only by a reboot: a change, then a reboot."""

    def plan(self, facts: Facts) -> Planned | None:
        here, installed = (facts[probe].ok for probe in self.probes()[:2])
        if here:
            return None
        if not installed:
            return Change(self.path, "absent", "installed", (Step(self.script),))
        return Reboot(self.path, "not loaded", "loaded", self.reboot)


def test_needed_reboot_shows_at_the_next_probe(place: Path, monkeypatch: pytest.MonkeyPatch):
    said: list[events.Event] = []
    installed = str(place / "installed")

    def boot(shell, connect, *, timeout_s, reason, emit):
        (place / "a").touch()
        return connect(), 1.5

    monkeypatch.setattr(applying, "reboot", boot)
    module = Module(str(place / "a"), sh("touch %s", installed), after=installed, reboot="470 is not loaded")
    outcome = host(said, driver=((), module)).apply()
    kinds = [[one.kind for one in event.plan.changes] for event in said if isinstance(event, events.Observed)]
    assert kinds[-3:] == [["change"], ["reboot"], []]
    assert (outcome.reboots, outcome.left.empty) == (1, True)


def test_a_reboot_that_changes_nothing_is_not_repeated(place: Path, monkeypatch: pytest.MonkeyPatch):
    reboots: list[str] = []

    def boot(shell, connect, *, timeout_s, reason, emit):
        reboots.append(reason)
        return connect(), 1.5

    monkeypatch.setattr(applying, "reboot", boot)
    with pytest.raises(NotConverged, match="the reason for the reboot remains: nouveau is bound"):
        host([], base=((), Flag(str(place / "a"), "true", reboot="nouveau is bound"))).apply()
    assert len(reboots) == 1


@pytest.mark.parametrize("broken", range(2, 6))
def test_a_lost_connection_repeats_no_step_and_loses_none(place: Path, broken: int):
    """Exec 2 is the second look, 3 the start of the job, 4 its watch, 5 the last look."""
    said: list[events.Event] = []
    flag = Flag(str(place / "a"), sh("echo x >>%s", place / "a"))
    outcome = host(said, LocalSession((broken,)), base=((), flag)).apply()
    assert outcome.left is not None
    assert outcome.left.empty
    assert (place / "a").read_text() == "x\n"
    assert [result.status for result in outcome.results] == [0]
    assert [event.reason for event in said if isinstance(event, events.Retrying)] == ["the connection was lost"]


def test_stopped_run_finishes_steps_and_starts_none(place: Path):
    stop = threading.Event()
    slow = Flag(str(place / "a"), sh("touch %s", place / "a"))

    def listen(event: events.Event) -> None:
        if isinstance(event, events.RoleStarted):
            stop.set()

    one = host([], more={"emit": listen, "stopping": stop}, base=((), slow), cuda=(("base",), touch(place / "b")))
    with pytest.raises(Stopped, match="remaining changes"):
        one.apply()
    assert (place / "a").exists()
    assert not (place / "b").exists()


def accepting(place: Path, *errors: Exception, **more: Any) -> tuple[HostApply, list[str]]:
    """A host that was drained before, of which something else is asked, and what happens to it, in order."""
    failing, happened = list(errors), []

    def accept(*_: object, locked: bool) -> tuple[Acceptance, ...]:
        assert locked
        happened.append("accept")
        if failing:
            raise failing.pop()
        return (Acceptance("base.disk", "passed"),)

    one = host([], None, more, {"accept": SimpleNamespace(accept=accept)}, base=((), touch(place / "a")))
    one._drained = True
    one._lock_host = lambda: happened.append("lock") or 0.0  # type: ignore[method-assign, func-returns-value]
    one._undrain = lambda: happened.append("undrain")  # type: ignore[method-assign]
    one._records.note_release = lambda facts, keep: happened.append("release") or ""  # type: ignore[method-assign, func-returns-value]
    return one, happened


def test_what_else_is_asked_comes_before_work_does(place: Path):
    (place / "a").touch()
    one, happened = accepting(place)
    assert one.apply().acceptance == (Acceptance("base.disk", "passed"),)
    assert happened == ["release", "lock", "accept", "undrain"]


@pytest.mark.parametrize(("request_", "job"), [(Request(keep_drained=True), {}), (Request(), {"rebuilds": True})])
def test_work_does_not_come_back_to_a_host_that_is_kept_drained_or_rebuilt(place: Path, request_: Request, job: Any):
    (place / "a").touch()
    one = host([], more={"request": request_}, job=job, base=((), touch(place / "a")))
    one._drained = True
    one._undrain = lambda: pytest.fail("work came back")  # type: ignore[method-assign]
    assert not one.apply().changed


def test_a_host_that_is_not_accepted_stays_drained_and_is_recorded_as_it_is(place: Path):
    one, happened = accepting(place, NotAccepted("gpu01", "its disk is slow"))
    with pytest.raises(NotAccepted, match="gpu01: the host is as desired, but its disk is slow"):
        one.apply()
    assert (place / "a").exists()
    assert happened[-3:] == ["release", "lock", "accept"]


def test_of_a_host_that_fails_or_waits_for_a_reboot_nothing_else_is_asked(place: Path):
    one, happened = accepting(place)
    one._apply = lambda plan, urgency: None  # type: ignore[method-assign]
    with pytest.raises(NotConverged):
        one.apply()
    wants = Flag(str(place / "b"), "true", reboot="module 460 is loaded, 470 installed")
    job = {"accept": SimpleNamespace(accept=lambda *_, **__: happened.append("accept"))}
    more = {"request": Request(no_reboot=True)}
    assert host([], more=more, job=job, driver=((), wants)).apply().acceptance == ()
    assert "accept" not in happened


def test_after_a_stop_nothing_else_is_asked(place: Path):
    (place / "a").touch()
    stopped = threading.Event()
    stopped.set()
    one, happened = accepting(place, stopping=stopped)
    with pytest.raises(Stopped, match="the host is as desired, but the additional checks did not run"):
        one.apply()
    assert "accept" not in happened


def removing(place: Path, *, departs: bool = True) -> tuple[HostApply, list[str]]:
    """A host with nothing left to take away, and what happens to it, in order."""
    desired = Desired("gpu01", STACK, (DesiredRole("base", (), (touch(place / "a"),)),), removes=True)
    run = run_of(lambda: RootShell(LocalSession()))
    one = HostApply(run, HostJob(target_of(desired), desired, departs))
    happened: list[str] = []
    one._lock_host = lambda: happened.append("hold") or 0.0  # type: ignore[method-assign, func-returns-value]
    one._records.note_removal = lambda facts, *, depart: happened.append(f"depart={depart}")  # type: ignore[method-assign]
    return one, happened


@pytest.mark.parametrize("depart", [True, False])
def test_what_a_removal_writes_down_is_written_under_the_hosts_lock(place: Path, depart: bool):
    (place / "a").touch()
    one, happened = removing(place, departs=depart)
    assert not one.apply().changed
    assert happened[0] == "hold"
    assert happened[-1] == f"depart={depart}"


def test_nothing_of_a_host_that_an_operator_locked_departs(place: Path, monkeypatch: pytest.MonkeyPatch):
    (place / "a").touch()
    monkeypatch.setattr(applying.locks, "refusal", lambda facts, now: "locked by ada")
    one, happened = removing(place)
    with pytest.raises(Locked, match="locked by ada"):
        one.apply()
    assert happened == []


@dataclass(frozen=True)
class Used(Flag):
    """One that jobs run from: the file beside it names them."""

    def probes(self) -> tuple[Probe, ...]:
        return (*super().probes(), Probe(sh("cat %s.users", self.path)))

    def plan(self, facts: Facts) -> Planned | None:
        planned = super().plan(facts)
        return replace(planned, disturbs="ends jobs") if isinstance(planned, Change) and self.users(facts) else planned

    def users(self, facts: Facts) -> tuple[str, ...]:
        return tuple(facts[self.probes()[2]].text.split())


def test_work_known_to_one_change_is_waited_for(place: Path):
    users = Path(f"{place}/a.users")
    users.write_text("tensorboard")
    one = host([], tensorflow=((), Used(str(place / "a"), sh("touch %s", place / "a"))))
    with pytest.raises(Refused, match="the affected software is in use by tensorboard"):
        one.apply()
    plan = one.plan()
    assert one._users(plan) == ("tensorboard",)
    users.write_text("")
    assert one._users(plan) == ()
    assert host([], tensorflow=((), Used(str(place / "a"), sh("touch %s", place / "a")))).apply().changed


# What a host that lies says


@pytest.mark.parametrize(("jobs", "execs"), [(100_000, 1), (1, 1 + 8 * 2)])
def test_a_host_that_always_names_running_jobs_is_left(place: Path, monkeypatch: pytest.MonkeyPatch, jobs, execs):
    """Each job is followed in a thread of its own, and after the last one the host is asked again."""
    lying = Probe(f"i=0; while [ $i -lt {jobs} ]; do i=$((i + 1)); echo run-base-$i; done", cap_bytes=2**22)
    monkeypatch.setattr(
        desired, "ENGINE_PROBES", tuple(lying if p is hostjobs.RUNNING else p for p in desired.ENGINE_PROBES)
    )
    monkeypatch.setattr(hostjobs, "RUNNING", lying)
    session = LocalSession()
    with pytest.raises(ProtocolError, match="too many running jobs"):
        host([], session, base=((), touch(place / "a"))).apply()
    assert session.execs == execs
    assert not (place / "a").exists()


# ---------------------------------------------------------------- a plan that was shown before


@pytest.mark.parametrize(("shown", "free_s", "plans"), [(True, math.inf, 1), (False, 0.0, 2), (False, math.inf, 1)])
def test_a_host_is_planned_under_its_lock_unless_no_other_run_had_it_since(
    place: Path, monkeypatch: pytest.MonkeyPatch, shown: bool, free_s: float, plans: int
) -> None:
    """A plan that was shown is always made again, since an operator's own commands take no lock."""
    monkeypatch.setattr(HostApply, "_lock_host", lambda self: free_s)
    said: list[events.Event] = []
    role = {"base": ((), touch(place / "motd"))}
    agreed = Agreed(host([], **role).plan()) if shown else None
    assert host(said, job={"agreed": agreed}, **role).apply().changed
    first_step = next(number for number, event in enumerate(said) if isinstance(event, events.RoleStarted))
    assert sum(isinstance(event, events.Observed) for event in said[:first_step]) == plans


def test_a_host_that_is_no_longer_as_it_was_shown_is_refused(place: Path) -> None:
    roles = {"base": ((), touch(place / "motd")), "cuda": ((), touch(place / "cuda"))}
    agreed = Agreed(host([], **roles).plan())
    (place / "cuda").touch()
    with pytest.raises(Refused, match="the host changed since this plan was made; nothing was done"):
        host([], job={"agreed": agreed}, **roles).apply()
    assert not (place / "motd").exists()


@dataclass(frozen=True)
class Costly(Flag):
    """One that takes away for good what the file beside it names."""

    def probes(self) -> tuple[Probe, ...]:
        return (*super().probes(), Probe(sh("cat %s.lost", self.path)))

    def losses(self, facts: Facts) -> tuple[str, ...]:
        return tuple(facts[self.probes()[2]].text.split())


@pytest.mark.parametrize("lost", ["", "data", "data more"])
def test_what_is_lost_for_good_is_what_was_agreed_to_and_no_more(place: Path, lost: str) -> None:
    path = place / "motd"
    role = {"base": ((), Costly(str(path), sh("touch %s", path)))}
    agreed = Agreed(host([], **role).plan(), losses=("data",))
    Path(f"{path}.lost").write_text(lost)
    one = host([], job={"agreed": agreed}, **role)
    if lost == "data more":
        with pytest.raises(
            Refused, match="more would now be deleted permanently, which the plan did not show; nothing was done"
        ):
            one.apply()
        assert not path.exists()
    else:
        assert one.apply().changed


@pytest.mark.parametrize("asked", [True, False])
def test_what_nobody_agreed_to_lose_is_kept(place: Path, asked: bool) -> None:
    """Nor where a saved plan is applied, and nobody was asked; ``--yes`` agrees to all, and so does a rebuild."""
    path = place / "motd"
    Path(f"{path}.lost").write_text("data")
    role = {"base": ((), Costly(str(path), sh("touch %s", path)))}
    agreed = Agreed(host([], **role).plan()) if asked else None
    with pytest.raises(Unanswered, match="data would be deleted permanently; pass --yes"):
        host([], job={"agreed": agreed}, **role).apply()
    assert not path.exists()
    assert host([], more={"request": Request(yes=True)}, job={"agreed": agreed}, **role).apply().changed
    path.unlink()
    assert host([], job={"rebuilds": True}, **role).apply().changed
