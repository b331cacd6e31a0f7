"""Draining: the hooks of an inventory, when they are used, and the host's own word that it is drained."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.apply.disturb import draining
from hostwright.apply.disturb.draining import Context, DrainDecision, Hooks, drain, read_hooks, undrain
from hostwright.apply.events import Event, Waiting
from hostwright.common.durations import Clock
from hostwright.common.errors import HostError, InputError, InputErrors, StepFailed, Unreachable
from hostwright.common.input.yamlfile import Origin
from hostwright.common.secret import Secret
from hostwright.inventory import Host, Value
from hostwright.plan.host.drained import DRAINED, Drained, drained
from hostwright.plan.host.occupancy import AtWork
from hostwright.plan.model import Answer, Change, Facts, Plan, Planned, Reboot, RolePlan, Step
from hostwright.plan.planning import HostPlan
from hostwright.transport import Output
from hostwright.transport.root import rootshell
from hostwright.transport.root.rootshell import RootShell
from tests.unit.support.shell import OWNER

COMMANDS = {"hostwright_drain": "scontrol drain", "hostwright_undrain": "scontrol resume"}


def host(**variables: object) -> Host:
    values = {
        name: Value(value, Origin("hosts.yml", line, 3), "host")
        for line, (name, value) in enumerate(variables.items(), 1)
    }
    return Host("gpu01", vars=values)


def test_a_host_without_hooks_has_none() -> None:
    assert read_hooks(host()) is None
    assert read_hooks(host(hostwright_drain=None, hostwright_undrain=None, hostwright_drain_on="host")) is None


def test_hooks_are_read_with_their_place_and_time() -> None:
    assert read_hooks(host(**COMMANDS)) == Hooks("scontrol drain", "scontrol resume", "controller", 3600)
    more = {"hostwright_drain_on": "host", "hostwright_drain_timeout": "2h"}
    assert read_hooks(host(**COMMANDS, **more)) == Hooks("scontrol drain", "scontrol resume", "host", 7200)
    assert read_hooks(host(**COMMANDS, hostwright_drain_on=None, hostwright_drain_timeout=None)) == Hooks(
        *COMMANDS.values()
    )


def test_templates_of_other_programs_are_left_alone() -> None:
    command = "docker ps --format '{{.Names}}' | xargs -r docker stop"
    read = read_hooks(host(hostwright_drain=command, hostwright_undrain="true"))
    assert read is not None
    assert read.drain == command


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"hostwright_drain": "x"}, "hosts.yml:1:3: hostwright_drain: is set, but hostwright_undrain is not"),
        ({"hostwright_undrain": "x"}, "hosts.yml:1:3: hostwright_undrain: is set, but hostwright_drain is not"),
        ({**COMMANDS, "hostwright_drain": "  "}, "hostwright_drain: found '  ', expected a command for /bin/sh"),
        ({**COMMANDS, "hostwright_drain": ["x"]}, "hostwright_drain: found a list, expected a command"),
        ({**COMMANDS, "hostwright_undrain": "a\0b"}, "expected a command for /bin/sh"),
        (
            {**COMMANDS, "hostwright_drain": "scontrol drain {{ inventory_hostname }}"},
            "found the template '{{ inventory_hostname }}', which is not rendered here; use $HOSTWRIGHT_HOST",
        ),
        ({**COMMANDS, "hostwright_drain_on": "here"}, "hostwright_drain_on: found 'here', expected controller or host"),
        ({**COMMANDS, "hostwright_drain_timeout": "long"}, "hostwright_drain_timeout: found 'long', expected"),
        ({**COMMANDS, "hostwright_drain_timout": 5}, "did you mean 'hostwright_drain_timeout'"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place(variables: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        read_hooks(host(**variables))
    assert sentence in str(caught.value)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(InputErrors) as caught:
        read_hooks(
            host(hostwright_drain=7, hostwright_undrain="x", hostwright_drain_on="x", hostwright_drain_timeout=0)
        )
    assert len(caught.value.errors) == 3


IDLE: tuple[str, ...] = ()
BUSY = tuple(f"python3 ({pid})" for pid in range(7))
HOOKS = Hooks("d", "u")
GO, DRAIN = DrainDecision(), DrainDecision(drain=True)


def plan(busy: tuple[str, ...] = IDLE, **more: str) -> HostPlan:
    changes: list[Planned] = [Change("NVIDIA driver", "a", "b", (Step("true"),), disturbs=more.get("disturbs", ""))]
    if reason := more.get("reboot"):
        changes.append(Reboot("open NVIDIA drivers", "a", "b", reason))
    return HostPlan(Plan("gpu01", "stack", (RolePlan("driver", (), tuple(changes)),)), busy)


def decide(looked_at: HostPlan, **options: Any) -> DrainDecision:
    """What is decided of a plan where all who are at work use a GPU."""
    return draining.decide(looked_at.plan.disturbs, AtWork(looked_at.busy), **options)


DRIVER = {"disturbs": "replaces the driver"}


@pytest.mark.parametrize("more", [DRIVER, {"reboot": "nouveau has a card"}])
@pytest.mark.parametrize(
    ("busy", "has", "options", "wanted"),
    [
        (IDLE, None, "", GO), (IDLE, None, "drain", GO), (IDLE, None, "force", GO),
        (IDLE, HOOKS, "", DRAIN), (IDLE, HOOKS, "drain", DRAIN), (IDLE, HOOKS, "force", GO),
        (BUSY, None, "force", GO), (BUSY, HOOKS, "drain", DRAIN), (BUSY, HOOKS, "drain force", GO),
    ],
)  # fmt: skip
def test_what_disturbs_goes_ahead_or_is_drained_for(
    more: dict[str, str], busy: tuple[str, ...], has: Hooks | None, options: str, wanted: DrainDecision
) -> None:
    asked = {name: name in options.split() for name in ("drain", "force")}
    assert decide(plan(busy, **more), hooks=has, **asked) == wanted


@pytest.mark.parametrize("has", [None, HOOKS])
def test_what_disturbs_nobody_goes_ahead_and_drains_nothing(has: Hooks | None) -> None:
    assert decide(plan(BUSY), hooks=has, drain=True, force=False) == GO


def test_busy_host_is_refused_with_its_users_and_the_options() -> None:
    both = plan(BUSY, **DRIVER, reboot="x")
    sentence = decide(both, hooks=HOOKS, drain=False, force=False).refusal
    assert sentence == (
        "the plan replaces the driver and reboots the host, and the GPU is in use by python3 (0), python3 (1), "
        "python3 (2), python3 (3), python3 (4) and 2 more; wait until this work has ended, pass --drain to drain the "
        "host first, or --force to disturb the work"
    )
    without = decide(both, hooks=None, drain=False, force=False).refusal
    assert "pass --drain (with hostwright_drain and hostwright_undrain in the inventory) to drain the host" in without


def test_work_that_a_change_alone_knows_of_holds_it_back_as_well() -> None:
    alone = AtWork(others=("tb (7)",))
    begin = "the plan removes the environment, and the affected software is in use by tb (7); wait until"
    options = {"hooks": None, "drain": False, "force": False}
    assert draining.decide("removes the environment", alone, **options).refusal.startswith(begin)
    both = AtWork(("python3 (1)", "tb (7)"), ("tb (7)",))
    begin = "the plan removes the environment, and the GPU is in use by python3 (1), tb (7); wait until"
    assert draining.decide("removes the environment", both, **options).refusal.startswith(begin)


def test_force_names_everybody_whom_it_does_not_wait_for() -> None:
    sentence = draining.overruled("replaces the driver; reboots the host", AtWork(BUSY, ("db (9)",)))
    assert sentence.startswith("--force: the plan replaces the driver and reboots the host, and the GPU is in use")
    assert all(name in sentence for name in (*BUSY, "db (9)"))
    assert draining.overruled("", AtWork(BUSY)) == draining.overruled("reboots the host", AtWork()) == ""


def test_draining_a_busy_host_needs_a_command() -> None:
    sentence = decide(plan(BUSY[:1], **DRIVER), hooks=None, drain=True, force=False).refusal
    assert sentence == (
        "the plan replaces the driver, and the GPU is in use by python3 (0). --drain needs commands: set "
        "hostwright_drain and hostwright_undrain in the inventory, or pass --force"
    )


class LocalSession:
    """Runs what a host would run, here, and counts."""

    def __init__(self) -> None:
        self.host = Host("gpu01", address="10.0.0.1")
        self.noise, self.noise_note = b"", ""
        self.runs = 0

    def run(self, command: str, *, stdin: bytes, timeout_s: float, **more: Any) -> Output:
        self.runs += 1
        done = subprocess.run(command.split(), input=stdin, capture_output=True, timeout=timeout_s, check=False)
        return Output(done.returncode, done.stdout, done.stderr, False, 0.0)


def here() -> RootShell:
    """Root on this machine, in place of a host."""
    return RootShell(LocalSession(), Secret("hunter2"))  # type: ignore[arg-type]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The host's file below ``tmp_path``, and no sudo."""
    path = tmp_path / "var" / "drained.json"
    write = draining.write_script
    monkeypatch.setattr(draining, "PATH", str(path))
    monkeypatch.setattr(draining, "write_script", lambda *words, **more: write(*words, **{**more, "owner": OWNER}))
    monkeypatch.setattr(rootshell, "wrap", lambda user, root, password, **_: f"{user}\n{root}".encode())
    return path


CONTEXT = Context("gpu01", "replaces\nthe\x1b driver", "run-7", "me@desk")


def told(path: Path) -> Drained | None:
    """What the host's probe answers now."""
    done = subprocess.run(["sh"], input=f"cat -- {path}", capture_output=True, text=True, check=False)
    return drained(Facts({DRAINED: Answer(done.returncode, done.stdout)}))


def both(where: str, tmp_path: Path, drain: str = "", undrain: str = "") -> Hooks:
    say = f'echo "$HOSTWRIGHT_HOST $HOSTWRIGHT_ADDRESS $HOSTWRIGHT_RUN $HOSTWRIGHT_REASON" >>{tmp_path}/said; '
    return Hooks(f"test -s {tmp_path}/var/drained.json; {say}{drain}", f"{say}{undrain}", where)


@pytest.mark.parametrize("where", draining.PLACES)
def test_drained_host_is_marked_from_before_drain_until_after_undrain(place: Path, tmp_path: Path, where: str) -> None:
    events: list[Event] = []
    session = LocalSession()
    shell = RootShell(session, Secret("hunter2"))  # type: ignore[arg-type]
    drain(shell, both(where, tmp_path, f"cp {place} {tmp_path}/then"), CONTEXT, events.append)
    said = told(place)
    assert said is not None
    assert (said.run, said.operator, said.reason) == ("run-7", "me@desk", "replaces the  driver")
    assert told(tmp_path / "then") == said, "a run that is killed in between leaves its word behind"
    undrain(shell, both(where, tmp_path, undrain=f"cp {place} {tmp_path}/then"), CONTEXT, events.append)
    assert told(place) is None
    assert told(tmp_path / "then") == said
    assert (tmp_path / "said").read_text() == "gpu01 10.0.0.1 run-7 replaces the  driver\n" * 2
    assert [event.what for event in events if isinstance(event, Waiting)] == [
        "the drain command",
        "the undrain command",
    ]
    assert session.runs == (4 if where == "host" else 2)


@pytest.mark.parametrize("where", draining.PLACES)
def test_a_drain_command_that_fails_is_told_with_its_last_lines(place: Path, tmp_path: Path, where: str) -> None:
    failing = both(where, tmp_path, "echo first; echo 'slurm is down' >&2; exit 9")
    with pytest.raises(StepFailed) as caught:
        drain(here(), failing, CONTEXT, lambda event: None)
    assert caught.value.sentence == (
        f"the drain command (on the {where}) ended with status 9: slurm is down; nothing was changed, and the host "
        "is treated as drained"
    )
    assert (caught.value.step.status, caught.value.step.tail) == (9, ("first", "slurm is down"))
    assert "hunter2" not in repr(caught.value.step)
    assert told(place) is not None, "it may have drained half of what it should"


@pytest.mark.parametrize("where", draining.PLACES)
def test_a_host_whose_undrain_command_fails_stays_drained(place: Path, tmp_path: Path, where: str) -> None:
    session = LocalSession()
    shell = RootShell(session, Secret("hunter2"))  # type: ignore[arg-type]
    drain(shell, both(where, tmp_path), CONTEXT, lambda event: None)
    with pytest.raises(StepFailed, match=r"ended with status 1.*the host stays drained, and the next run tries again"):
        undrain(shell, both(where, tmp_path, undrain="false"), CONTEXT, lambda event: None)
    assert told(place) is not None
    undrain(shell, both(where, tmp_path), CONTEXT, lambda event: None)
    assert told(place) is None


def test_timed_out_and_killed_commands_are_told_apart(place: Path) -> None:
    with pytest.raises(StepFailed, match="did not end within 0 s and printed nothing"):
        drain(here(), Hooks("sleep 600", "u", timeout_s=0.2), CONTEXT, lambda event: None)
    with pytest.raises(StepFailed, match="was killed by signal 9"):
        drain(here(), Hooks("kill -9 $$", "u"), CONTEXT, lambda event: None)


def test_a_host_that_cannot_be_marked_is_not_drained(place: Path, tmp_path: Path) -> None:
    place.parent.touch()
    with pytest.raises(HostError, match=r"drained.json cannot be written, so the host was not drained: .*mkdir"):
        drain(here(), both("controller", tmp_path), CONTEXT, lambda event: None)
    assert not (tmp_path / "said").exists()


@pytest.mark.parametrize("change", [drain, undrain])
def test_host_going_down_while_marked_is_asked_again(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[..., None]
) -> None:
    monkeypatch.setattr(LocalSession, "run", lambda *_, **__: Output(143, b"", b"Terminated\n", False, 0.0))
    with pytest.raises(Unreachable, match="the program that Hostwright ran was killed on the host") as caught:
        change(here(), both("controller", tmp_path), CONTEXT, lambda event: None)
    assert caught.value.passing


def test_a_mark_of_an_earlier_run_is_renewed(place: Path, tmp_path: Path) -> None:
    for run in ("run-1", "run-2"):
        drain(here(), both("controller", tmp_path), replace(CONTEXT, run=run), lambda event: None)
    said = told(place)
    assert said is not None
    assert said.run == "run-2"
    assert [path.name for path in place.parent.iterdir()] == [place.name], "no half-written file is left"


def read(text: str, status: int = 0) -> Drained | None:
    return drained(Facts({DRAINED: Answer(status, text)}))


def test_a_host_that_nobody_drained_says_nothing() -> None:
    assert read("", 1) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "{}", '{"schema": 2, "run": "x"}', '{"schema": 1, "run": ["x"]}'])
def test_a_mark_that_cannot_be_read_is_a_mark(text: str) -> None:
    assert read(text) == Drained()
    assert str(read(text)) == "drained by somebody (run unknown) since an unknown time: no reason given"


@given(st.dictionaries(st.sampled_from(["schema", "run", "operator", "reason", "since"]), st.text() | st.just(1)))
def test_what_a_host_says_is_shown_on_one_line_without_control_characters(said: dict[str, object]) -> None:
    found = read(json.dumps({**said, "schema": 1}))
    assert found is not None
    assert str(found).isprintable()
    assert len(str(found)) < 1500


def test_the_drain_mark_is_read_from_the_path_it_is_written_to() -> None:
    assert DRAINED.script.endswith(f"cat -- {draining.PATH}")
    assert DRAINED.root


class Work:
    """Who uses the GPU, look by look, by a clock that moves only when somebody sleeps."""

    def __init__(self, *looks: tuple[str, ...]) -> None:
        self.looks = list(looks)
        self.events: list[Event] = []
        self.s = 0.0

    def look(self) -> tuple[str, ...]:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def sleep(self, seconds: float) -> None:
        self.s += seconds

    def wait(self, timeout_s: float) -> list[str]:
        draining.wait_until_idle("gpu01", self.look, timeout_s, self.events.append, Clock(lambda: self.s, self.sleep))
        return [event.what for event in self.events if isinstance(event, Waiting)]


def test_an_idle_gpu_is_not_waited_for() -> None:
    work = Work(IDLE)
    assert work.wait(60) == []
    assert work.s == 0


def test_work_that_ends_is_waited_for_and_shown_when_it_changes() -> None:
    work = Work(("a (1)", "b (2)"), ("a (1)", "b (2)"), ("b (2)",), IDLE)
    assert work.wait(60) == ["an idle host: in use by a (1), b (2)", "an idle host: in use by b (2)"]
    assert work.s == 3 * draining.POLL_S


def test_work_that_does_not_end_is_named_and_the_host_stays_drained() -> None:
    work = Work(("a (1)",), BUSY)
    with pytest.raises(HostError) as caught:
        work.wait(60)
    assert caught.value.sentence == (
        "still in use by python3 (0), python3 (1), python3 (2), python3 (3), python3 (4) and 2 more, although the host "
        "was drained 60 s ago. Nothing was changed, and the host stays drained; end that work or increase "
        "hostwright_drain_timeout, and provision again"
    )
    assert work.s == 60
