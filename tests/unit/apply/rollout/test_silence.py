"""Hosts that do not answer are named in time, once and then seldom; hosts whose jobs run are left in peace."""

from __future__ import annotations

import threading
from queue import SimpleQueue

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.apply import events
from hostwright.apply.host.applying import HostApply, HostJob
from hostwright.apply.jobs.scripting import Progress
from hostwright.apply.rollout.silence import AGAIN_AFTER_S, CONTACT, NAMED_AFTER_S, TICKS, Silence
from hostwright.common.errors import HostError
from hostwright.plan.desired import Desired
from hostwright.plan.model import Plan
from hostwright.transport.root.rootshell import RootShell
from tests.places import INVENTORY
from tests.unit.support.runs import run_of, target_of
from tests.unit.support.stacks import load_stack

PLAN = Plan("gpu01", "tensorflow-2.9")
STACK = load_stack("tensorflow-2.9", [INVENTORY / "stacks"])


class World:
    """A silence with a clock that the test winds, and all that came through it."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.seen: list[events.Event] = []
        self.silence = Silence(self.seen.append, clock=lambda: self.now_s)

    def later(self, seconds: float) -> list[events.Silent]:
        """So many seconds pass, with all the looks that fall into them; what was named meanwhile."""
        before, end_s = len(self.seen), self.now_s + seconds
        while self.now_s < end_s:
            self.now_s += NAMED_AFTER_S / TICKS
            self.silence.name_silent()
        return [event for event in self.seen[before:] if isinstance(event, events.Silent)]


@pytest.fixture
def world() -> World:
    return World()


def test_silent_host_is_named_after_10_s_then_every_30_s(world):
    world.silence(events.Waiting("gpu01", "a connection"))
    assert world.later(7.5) == []
    assert world.silence.hosts() == frozenset()
    assert world.later(2.5) == [events.Silent("gpu01", "a connection", 8.0)]
    assert world.silence.hosts() == {"gpu01"}
    assert [event.seconds for event in world.later(89)] == [38.0, 68.0, 98.0]


def test_every_event_is_passed_on_as_it_is(world):
    sent = [
        events.Waiting("gpu01", "a connection"),
        events.Note("gpu01", "hello"),
        events.HostEnded("gpu01", "changed"),
    ]
    for event in sent:
        world.silence(event)
    assert world.seen == sent


@pytest.mark.parametrize(
    "alive",
    [
        events.Note("gpu01", "the host says something"),
        events.RoleStarted("gpu01", "driver", 3),
        events.RoleProgress("gpu01", "driver", Progress(None, "", "")),
        events.Delivering("gpu01", "driver", "driver.run", 1, 2),
        events.HostEnded("gpu01", "unreachable", "the host hangs"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_output_ends_the_silence_and_running_jobs_may_be_quiet(world, alive):
    world.silence(events.Waiting("gpu01", "a connection"))
    world.later(9)
    world.silence(alive)
    assert world.silence.hosts() == frozenset()
    assert world.later(3600) == []


def test_a_wait_for_something_else_is_a_new_one(world):
    world.silence(events.Waiting("gpu01", "a connection"))
    world.later(9)
    world.silence(events.Waiting("gpu01", "the answers to all questions"))
    assert world.silence.hosts() == frozenset()
    assert world.later(10) == [events.Silent("gpu01", "the answers to all questions", 8.0)]


def test_attempts_to_connect_one_after_another_are_one_silence(world):
    for number in range(1, 4):
        world.silence(events.Waiting("gpu01", "a connection"))
        assert world.later(3) == [events.Silent("gpu01", "a connection", 8.0)] * (number == 3)
        world.silence(events.Retrying("gpu01", "connection", number, 0.0, "refused"))
    assert world.silence.hosts() == {"gpu01"}


def test_trying_a_step_again_is_no_wait_for_the_host(world):
    world.silence(events.RoleStarted("gpu01", "base", 3))
    world.silence(events.Retrying("gpu01", "apt", 1, 60.0, "another process holds the lock"))
    assert world.later(60) == []


@pytest.mark.parametrize("what", ["down (no answer on port 22)", "the drain command", "an idle host: in use by 4711"])
def test_rebooting_or_draining_host_may_be_silent(world, what):
    world.silence(events.Waiting("gpu01", "a connection"))
    world.later(9)
    world.silence(events.Observed("gpu01", PLAN))
    world.silence(events.Waiting("gpu01", what))
    assert world.later(3600) == []
    assert world.silence.hosts() == frozenset()


@pytest.mark.parametrize("what", CONTACT)
def test_host_lost_during_the_run_is_named(world, what):
    world.silence(events.Observed("gpu01", PLAN))
    world.silence(events.RoleStarted("gpu01", "driver", 3))
    world.silence(events.Waiting("gpu01", what))
    assert world.later(10) == [events.Silent("gpu01", what, 8.0)]


def test_lost_host_that_reboots_is_no_longer_lost(world):
    world.silence(events.Observed("gpu01", PLAN))
    world.silence(events.Waiting("gpu01", "a connection"))
    world.later(10)
    world.silence(events.Waiting("gpu01", "down (no answer on port 22)"))
    assert world.silence.hosts() == frozenset()
    assert world.later(3600) == []


def test_contact_is_what_a_run_waits_for_when_it_connects_and_asks():
    """The words are those of the modules that wait."""

    class Deaf:
        def run(self, command: str, **_: object) -> object:
            raise HostError("gpu01", "its answer makes no sense")

        def close(self) -> None:
            pass

    waits: list[str] = []

    def emit(event: events.Event) -> None:
        if isinstance(event, events.Waiting):
            waits.append(event.what)

    with pytest.raises(HostError, match="no sense"):
        desired = Desired("gpu01", STACK, ())
        one = HostApply(run_of(lambda: RootShell(Deaf()), emit), HostJob(target_of(desired), desired))
        one.probe()
    assert sorted(waits) == sorted(CONTACT)


def test_each_host_has_a_silence_of_its_own(world):
    world.silence(events.Waiting("gpu01", "a connection"))
    world.later(4)
    world.silence(events.Waiting("gpu02", "a connection"))
    world.silence(events.RoleStarted("gpu03", "base", 1))
    assert [event.host for event in world.later(5)] == ["gpu01"]
    assert [event.host for event in world.later(5)] == ["gpu02"]
    assert world.silence.hosts() == {"gpu01", "gpu02"}


def test_a_silent_host_is_reported_until_the_watch_ends():
    seen: SimpleQueue[events.Event] = SimpleQueue()
    with Silence(seen.put, after_s=0.02, again_s=3600) as silence:
        silence(events.Waiting("gpu01", "a connection"))
        assert seen.get(timeout=60) == events.Waiting("gpu01", "a connection")
        named = seen.get(timeout=60)
        assert isinstance(named, events.Silent) and named.host == "gpu01"
    silence(events.Note("gpu01", "a thread that was left behind"))
    assert seen.empty()


def test_the_end_does_not_wait_for_a_view_that_is_stuck(monkeypatch):
    monkeypatch.setattr("hostwright.apply.rollout.silence.LEAVE_S", 0.01)
    stuck, release = threading.Event(), threading.Event()

    def emit(event: events.Event) -> None:
        if isinstance(event, events.Silent):
            stuck.set()
            release.wait(60)

    with Silence(emit, after_s=0.02) as silence:
        silence(events.Waiting("gpu01", "a connection"))
        assert stuck.wait(60)
    assert not release.is_set()
    release.set()


STEPS = st.one_of(
    st.integers(1, 40).map(lambda halves: halves / 2),
    st.builds(events.Waiting, st.sampled_from(["gpu01", "gpu02"]), st.sampled_from(["a connection", "the answers"])),
    st.builds(events.Note, st.sampled_from(["gpu01", "gpu02"]), st.just("alive")),
)


@settings(deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_whatever_happens_hosts_are_named_in_time_and_never_while_they_live(steps):
    world, since = World(), {}
    for step in steps:
        if isinstance(step, events.Note):
            world.silence(step)
            since.pop(step.host, None)
        elif isinstance(step, events.Waiting):
            world.silence(step)
            if since.get(step.host, ("", 0.0))[0] != step.what:
                since[step.host] = (step.what, world.now_s)
        else:
            for named in world.later(step):
                assert named.what == since[named.host][0]
                assert named.seconds >= NAMED_AFTER_S
                assert (named.seconds - NAMED_AFTER_S) % AGAIN_AFTER_S == 0
            overdue = {host for host, (_, begun_s) in since.items() if world.now_s - begun_s >= 10.0}
            waiting = {host for host, (_, begun_s) in since.items() if world.now_s - begun_s >= NAMED_AFTER_S}
            assert overdue <= world.silence.hosts() <= waiting
