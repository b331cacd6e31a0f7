"""Tests of proofs as a requirement of other commands: which hosts are proved, and the effect of the results."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hostwright.apply.events import Event, HostEnded
from hostwright.apply.host.applying import HostJob
from hostwright.apply.host.outcome import Outcome
from hostwright.apply.journal.reading import Runs
from hostwright.apply.rollout import applying
from hostwright.apply.run import Run
from hostwright.cli.views.changing.outcomes import show_outcomes
from hostwright.common.errors import Acceptance, HostError, InputError, NotAccepted, Stopped, Unreachable, worst
from hostwright.common.places import state_root
from hostwright.common.request import Request
from hostwright.fleet import Fleet, Listener, RunResults
from hostwright.plan.model import Plan
from hostwright.prove import proving
from hostwright.prove.fleetproof import HostProof
from hostwright.prove.judging import VARIABLE
from hostwright.prove.model import ProofResult
from hostwright.prove.proofstore import ProofHistory
from hostwright.prove.proving import accepted
from hostwright.rebuild import run as rebuilding
from hostwright.rebuild.host.hostrebuild import HostRebuild
from hostwright.rebuild.ways.ways import Decision
from tests.unit.support.proofs import fleet as proofs_of_a_run
from tests.unit.support.proofs import host, result, ticks

HOSTS = ("gpu01", "gpu02", "gpu03")
GOOD, SLOW = result(ticks(2.5)), result(ticks(1.0))
BAD = result(proof="clock.bad", outcome="failed", sentence="a wrong value")
NOT_RUN = result(proof="clock.idle", outcome="not run", sentence="it is in use")
NO_GPU = result(proof="clock.card", outcome="no GPU", sentence="no GPU in this host")


class World:
    """Hosts that become as desired or fail, the results of their proofs, and the proved hosts in order."""

    def __init__(self) -> None:
        self.broken: dict[str, HostError] = {}
        self.pending: set[str] = set()
        self.shown: dict[str, tuple[ProofResult, ...] | HostError] = {}
        self.later: dict[str, tuple[ProofResult, ...]] = {}  #: results of a host from the second time on
        self.proved: list[tuple[str, tuple[str, ...]]] = []
        self.heard: list[Event] = []
        self.locked = True  #: whether the command holds the host's lock when it starts proofs

    def apply(self, run: Run, job: HostJob) -> Outcome:
        """As ``HostApply.apply``: acceptance is only checked for a host that is as desired."""
        name = job.target.name
        if name in self.broken:
            raise self.broken[name]
        if name in self.pending:
            left = type(
                "Left",
                (),
                {
                    "empty": False,
                    "changes": (1,),
                    "tally": "1 change",
                    "to_json": lambda _: Plan(name, "house").to_json(),
                },
            )()
            return Outcome(name, Plan(name, "house"), left=left)  # type: ignore[arg-type]
        acceptance = job.accept.accept(run, job.target, locked=True) if job.accept else ()
        return Outcome(name, Plan(name, "house"), acceptance=acceptance)

    def prove(self, name: str, keys: tuple[str, ...]) -> HostProof:
        """As ``HostProve.prove``."""
        shown = self.shown.get(name, (GOOD,))
        if name in self.later and name in dict(self.proved):
            shown = self.later[name]
        self.proved.append((name, keys))
        if isinstance(shown, HostError):
            raise shown
        return host(name, *shown)


Provision = Callable[..., RunResults[Outcome]]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Hosts on which nothing is changed."""
    made = World()

    class Apply:
        def __init__(self, run: Run, job: HostJob):
            self.about = run, job

        def apply(self) -> Outcome:
            return made.apply(*self.about)

        def close(self) -> None:
            """Nothing to close."""

    class Prove:
        def __init__(self, _run: Run, target: Any, proofs: Any, *, locked: bool = False):
            assert locked == made.locked, "the host is locked once, by whoever had not locked it"
            self.about = target.name, tuple(proof.key for proof in proofs)

        def prove(self) -> HostProof:
            return made.prove(*self.about)

        def close(self) -> None:
            """Nothing to close."""

    monkeypatch.setattr(applying, "HostApply", Apply)
    monkeypatch.setattr(proving, "HostProve", Prove)
    return made


@pytest.fixture
def provision(world: World, fleet: Fleet) -> Provision:
    """Provision all hosts, one after the other, and prove them."""

    def run(prove: Any = "quick", *, canary: str = "", max_fail: str = "") -> RunResults[Outcome]:
        request = Request(canary=canary, batch="1", max_fail=max_fail, prove=prove)
        view = Listener(world.heard.append)
        return fleet.provision(fleet.targets("all", ["base"]), request, view=view)

    return run


def test_each_host_that_is_as_desired_is_proved_at_the_level_that_was_asked_for(world: World, provision: Provision):
    ended = provision()
    assert (ended.status, ended.results.errors) == (0, ())
    assert [outcome.acceptance for outcome in ended.results.values] == [(Acceptance("clock.ticks", "passed"),)] * 3
    assert [name for name, _ in world.proved] == [*HOSTS]
    quick = set(world.proved[0][1])
    world.proved.clear()
    provision("full")
    assert quick < set(world.proved[0][1])


def test_without_the_option_nothing_is_proved(world: World, provision: Provision):
    ended = provision(None)
    assert (ended.status, world.proved) == (0, [])
    assert "prove" not in Runs(state_root()).list()[0].header.options


def test_a_proof_that_fails_fails_its_host_alone_and_ends_the_run_with_3(world: World, provision: Provision):
    world.shown["gpu02"] = (GOOD, NOT_RUN, BAD)
    world.shown["gpu03"] = (GOOD, BAD)
    ended = provision()
    first, second = ended.results.errors
    assert second.sentence == "the host is as desired, but its proof clock.bad failed: a wrong value"
    assert (second.exit_status, [one.outcome for one in second.acceptance]) == (3, ["passed", "failed"])
    assert first.sentence.endswith("clock.bad failed: a wrong value (and 1 more)")
    assert (first.exit_status, ended.status) == (1, 1), "what was not run may be as bad: as prove has it"
    world.shown["gpu02"] = (GOOD,)
    assert provision().status == 3
    last = [event for event in world.heard if isinstance(event, HostEnded)][-1]
    assert (last.host, last.result, last.sentence) == ("gpu03", "failed", second.sentence)
    run, _ = Runs(state_root()).list()
    assert (run.status, run.header.options["prove"]) == (3, "quick")


def test_a_canary_whose_proof_fails_stops_the_rollout(world: World, provision: Provision):
    world.shown["gpu01"] = (BAD,)
    ended = provision(canary="1")
    assert (ended.results.untouched, ended.results.stopped_because) == (("gpu02", "gpu03"), "a canary failed: gpu01")
    assert (ended.status, [name for name, _ in world.proved]) == (3, ["gpu01"])


def test_proofs_that_fail_spend_the_failure_budget(world: World, provision: Provision):
    world.shown = {"gpu01": (BAD,), "gpu02": (NOT_RUN,)}
    ended = provision(max_fail="1")
    assert ended.results.untouched == ("gpu03",)
    assert ended.results.stopped_because == "too many failures: 2 hosts failed, --max-fail allows 1"


def test_a_host_that_is_not_as_desired_is_not_proved(world: World, provision: Provision, capsys: Any):
    world.broken["gpu01"] = HostError("gpu01", "a step ended with status 1")
    world.pending.add("gpu02")
    ended = provision()
    assert (ended.status, [name for name, _ in world.proved]) == (1, ["gpu03"])
    show_outcomes("provision", (), ended, proved=True, as_json=True)
    told = json.loads(capsys.readouterr().out)
    proofs = {one["host"]: one["proofs"] for one in [*told["hosts"], *told["errors"]]}
    passed = [{"proof": "clock.ticks", "outcome": "passed", "sentence": ""}]
    assert proofs == {"gpu01": None, "gpu02": None, "gpu03": passed}
    show_outcomes("provision", (), ended, proved=True, as_json=False)
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.startswith("gpu")}
    assert ["not proved" in rows[name] for name in HOSTS] == [True, True, False]
    assert "1 passed" in rows["gpu03"]


def test_a_proof_that_failed_is_told_with_its_host(world: World, provision: Provision, capsys: Any):
    world.shown["gpu01"] = (GOOD, BAD)
    ended = provision(canary="1")
    show_outcomes("provision", (), ended, proved=True, as_json=True)
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert (error["host"], error["kind"]) == ("gpu01", "NotAccepted")
    assert [(one["proof"], one["outcome"]) for one in error["proofs"]] == [
        ("clock.ticks", "passed"),
        ("clock.bad", "failed"),
    ]
    show_outcomes("provision", (), ended, proved=True, as_json=False)
    told = capsys.readouterr()
    assert "1 failed, 1 passed" in told.out
    assert "gpu01: the host is as desired, but its proof clock.bad failed: a wrong value" in told.err
    show_outcomes("provision", (), ended, as_json=True)
    assert "proofs" not in capsys.readouterr().out


def test_a_host_that_is_lost_while_it_is_proved_has_failed(world: World, provision: Provision):
    world.shown["gpu01"] = Unreachable("gpu01", "the connection was lost", passing=True)
    ended = provision()
    (error,) = ended.results.errors
    assert error.sentence == "the host is as desired, but its proofs could not be run: the connection was lost"
    assert (type(error), error.exit_status, ended.status) == (NotAccepted, 1, 1)


def test_an_operators_stop_is_no_failed_proof(world: World, provision: Provision):
    world.shown["gpu01"] = Stopped("gpu01", "stopped by the operator")
    assert [type(error) for error in provision().results.errors] == [Stopped]


def test_figures_are_kept_and_held_to_the_hosts_baseline(world: World, fleet: Fleet, provision: Provision):
    history = ProofHistory(state_root())
    kept = proofs_of_a_run(host("gpu01", GOOD), inventory=str(fleet.path))
    history.add(kept, baseline=True)
    world.shown["gpu01"] = (SLOW,)
    ended = provision()
    (error,) = ended.results.errors
    assert (error.host, ended.status) == ("gpu01", 3)
    assert "60% worse than its baseline" in error.sentence
    assert [(one.host, one.value) for one in history.past(str(fleet.path), HOSTS, 0)] == [
        ("gpu01", 2.5), ("gpu01", 1.0), ("gpu02", 2.5), ("gpu03", 2.5),
    ]  # fmt: skip


def test_a_host_that_was_busy_for_a_moment_is_measured_again_and_accepted(
    world: World, fleet: Fleet, provision: Provision
):
    history = ProofHistory(state_root())
    once, busy, later = (result(ticks(value), proof="base.memory") for value in (2.5, 1.0, 2.4))
    history.add(proofs_of_a_run(host("gpu01", once), inventory=str(fleet.path)), baseline=True)
    world.shown["gpu01"], world.later["gpu01"] = (busy,), (later,)
    ended = provision()
    assert (ended.results.errors, ended.status) == ((), 0)
    assert [one.value for one in history.past(str(fleet.path), ["gpu01"], 0)] == [2.5, 2.4]


def test_roles_without_a_proof_are_refused_before_a_run_begins(fleet: Fleet):
    with pytest.raises(InputError, match="no role of these hosts has a proof of the quick level"):
        fleet.provision(fleet.targets("all", ["container"]), Request(prove="quick"))
    assert Runs(state_root()).list() == []


def test_a_wrong_variable_is_refused_before_a_run_begins(fleet: Fleet):
    (fleet.path / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"gpu01": {VARIABLE: "some"}}}}))
    with pytest.raises(InputError, match=rf"hosts\.yml:1:30: {VARIABLE}: found 'some'"):
        fleet.provision(Fleet.load(fleet.path).targets("all"), Request(prove="quick"))
    assert Runs(state_root()).list() == []


@pytest.fixture
def given_back(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hosts that a rebuild returned to work. All are repaired without changing anything."""
    back: list[str] = []

    class Host(HostRebuild):
        def diagnose(self) -> Decision:
            return Decision("repair")

        def _require_free(self, way: Any) -> None:
            """The host has no users."""

        def _provision(self) -> None:
            """The host is as desired, and every check passes."""

        def _back_to_work(self, *, changed: bool) -> None:
            back.append(self.name)

    monkeypatch.setattr(rebuilding, "HostRebuild", Host)
    return back


def test_a_rebuilt_host_gets_work_again_only_after_its_proofs(world: World, fleet: Fleet, given_back: list[str]):
    world.shown, world.locked = {"gpu02": (GOOD, BAD), "gpu03": (GOOD, NOT_RUN)}, False
    view = Listener(world.heard.append)
    rebuilt = fleet.rebuild(fleet.targets("all", ["base"]), None, Request(prove="quick"), view=view)
    assert (rebuilt.status, given_back) == (1, ["gpu01"])
    assert {done.host: (done.outcome, done.sentence) for done in rebuilt.results.values} == {
        "gpu01": ("rebuilt", ""),
        "gpu02": ("failed", "the host is as desired, but its proof clock.bad failed: a wrong value"),
        "gpu03": ("failed", "the host is as desired, but its proof clock.idle was not run: it is in use"),
    }
    assert sorted(name for name, _ in world.proved) == [*HOSTS]
    (run,) = Runs(state_root()).list()
    assert (run.status, run.header.options["prove"]) == (1, "quick")


def test_a_rebuild_without_the_option_proves_nothing(world: World, fleet: Fleet, given_back: list[str]):
    world.shown["gpu02"] = (BAD,)
    rebuilt = fleet.rebuild(fleet.targets("all", ["base"]))
    assert (rebuilt.status, sorted(given_back), world.proved) == (0, [*HOSTS], [])


def test_a_host_without_a_gpu_is_accepted_and_what_was_not_run_is_not() -> None:
    assert [one.outcome for one in accepted(host("gpu01", GOOD, NO_GPU))] == ["passed", "no GPU"]
    with pytest.raises(NotAccepted, match=r"its proof clock\.idle was not run: it is in use") as caught:
        accepted(host("gpu01", GOOD, NOT_RUN))
    assert caught.value.exit_status == 1


def test_the_worst_exit_status_tells_of_all() -> None:
    assert [worst(some) for some in ((), (0,), (0, 3), (3, 1, 0))] == [0, 0, 3, 1]
