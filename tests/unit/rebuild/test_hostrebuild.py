"""One host through its rebuild: which way follows which, what is locked, and that nothing is undone by accident."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hostwright.apply.disturb import draining, usage
from hostwright.apply.disturb.draining import Hooks
from hostwright.apply.disturb.rebooting import NotBack
from hostwright.apply.events import Event, Note
from hostwright.apply.events import Phase as PhaseEnded
from hostwright.apply.host.applying import HostJob
from hostwright.apply.host.outcome import Outcome as Applied
from hostwright.apply.locking import locallocks
from hostwright.common.errors import (
    ArtifactError,
    HostError,
    HostwrightError,
    Locked,
    NotAccepted,
    Refused,
    StepFailed,
    Stopped,
)
from hostwright.common.request import Request
from hostwright.fleet import Fleet, TargetHost
from hostwright.plan.host import drained as hostdrained
from hostwright.plan.host import jobs, locks
from hostwright.plan.host.occupancy import standard_occupancies
from hostwright.plan.model import Answer, Facts, Plan, Reboot, RolePlan
from hostwright.rebuild.host import freeing, hostrebuild
from hostwright.rebuild.host.clock import Phases
from hostwright.rebuild.host.hostrebuild import HostRebuild
from hostwright.rebuild.host.powering import OrderFailed
from hostwright.rebuild.host.tools import Tools
from hostwright.rebuild.rebuild import Rebuild
from hostwright.rebuild.ways.diagnosis import Diagnosis
from hostwright.rebuild.ways.probing import ProbedHost, Ways
from hostwright.standard.roles.container.running import CONTAINERS
from hostwright.standard.roles.driver.states.gpu_use import HOLDERS
from hostwright.transport.identity.hostkeys import HostKeyMismatch
from hostwright.verify.verdict import Check
from tests.places import INVENTORY
from tests.unit.support.known import KNOWN
from tests.unit.support.rebuilds import answers, finding, silent, xid
from tests.unit.support.runs import run_of

GOOD, BAD = Check("driver", "c", "it works", True, 0.1, ""), Check("driver", "c", "it works", False, 0.1, "no")
ASKED = usage.probes(standard_occupancies())
FREE = Facts({probe: Answer(0, "") for probe in ASKED} | {hostdrained.DRAINED: Answer(1, "")})
LOCK = locks.OperatorLock("bo@desk", "RMA", "gpu07", datetime(2026, 1, 1, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC))
LOCKED = Facts({**FREE, locks.LOCK: Answer(0, f"there\n{LOCK.to_json()}\n")})


@dataclass
class World:
    """A host that is as the next of ``looks`` says, and what was done to it."""

    looks: list[Diagnosis]
    facts: Facts | None = field(default_factory=lambda: FREE)
    done: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    fails: dict[str, list[Exception]] = field(default_factory=dict)
    checks: list[list[Check]] = field(default_factory=list)
    error: HostError | None = None
    stopped: bool = False
    looked: int = 0
    left: Plan | None = None  #: what applying leaves to do

    def do(self, what: str) -> None:
        """Note that something was done, and fail where that is wanted."""
        self.done.append(what)
        if self.fails.get(what):
            raise self.fails[what].pop(0)

    def ask(self, *_: Any, **__: Any) -> Facts:
        """Who works on the host now."""
        assert self.facts is not None
        return self.facts

    def probe_host(self, *args: Any, tried: tuple[str, ...], **more: Any) -> ProbedHost:
        self.looked += 1
        diagnosis = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        facts = self.facts if diagnosis.reach == "answers" else None
        return ProbedHost(replace(diagnosis, tried=tried), facts, self.error)


class Session:
    """A session in which nothing happens."""

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""


@pytest.fixture
def target(tmp_path: Path) -> TargetHost:
    (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu07: {}}}")
    return Fleet.load(tmp_path / "hosts.yml").targets("gpu07")[0]


@pytest.fixture
def start(target: TargetHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Rebuild]:
    """Rebuild the host of a world."""

    def run(
        world: World,
        begin: Any = None,
        *,
        hooks: Hooks | None = None,
        bmc: bool = True,
        local: bool = False,
        drain: bool = False,
        accept: Any = None,
    ) -> Rebuild:
        class Host:
            rebooted_s = 1e-9

            def __init__(self, _run: object, job: HostJob):
                self.what = "remove" if job.desired.removes else "provision"
                assert job.rebuilds, "work comes back only after the checks, and what comes next is for the rebuild"
                assert not job.departs, "what was there before is still to be known"
                assert job.accept is None, "it is asked after the checks"

            def apply(self) -> Applied:
                world.do(self.what)
                return Applied("gpu07", NOTHING, left=world.left)

            def close(self) -> None:
                """Nothing to close."""

        monkeypatch.setattr(hostrebuild, "probe_host", world.probe_host)
        monkeypatch.setattr(usage, "ask", world.ask)
        monkeypatch.setattr(freeing, "ask", world.ask)
        monkeypatch.setattr(hostrebuild.applying, "HostApply", Host)
        monkeypatch.setattr(hostrebuild.powering, "switch", lambda _t, _p, way, by_bmc, boot_id: world.do(way))
        monkeypatch.setattr(hostrebuild.departure, "clean", lambda *_: world.do("clean"))
        monkeypatch.setattr(draining, "drain", lambda *_: world.do("drain"))
        monkeypatch.setattr(draining, "undrain", lambda *_: world.do("undrain"))
        monkeypatch.setattr("hostwright.apply.locking.operatorlock.put_lock", lambda *_, **__: world.do("lock"))

        def install(_reason: str, _phases: Phases, begun: Callable[[], None]) -> None:
            world.do("before the install")
            begun()
            world.do("install")

        def check() -> list[Check]:
            world.do("verify")
            return world.checks.pop(0) if world.checks else [GOOD]

        begun = run_of(Session, world.events.append, verb="rebuild", request=Request(drain=drain), path=INVENTORY)
        if world.stopped:
            begun.stopping.set()
        monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path))
        monkeypatch.setattr(Tools, "hooks", hooks)
        tools = Tools(
            run=begun,
            target=replace(target, host=replace(target.host, connection="local" if local else "ssh")),
            ways=Ways((lambda: None) if bmc else None, ""),  # type: ignore[arg-type, return-value]
            install=install,
            trust=lambda error: world.do("trust"),
            check=check,
            history=(),
            accept=accept,
        )  # fmt: skip
        one = HostRebuild(tools, begin)
        return one.run(one.diagnose())

    return run


HOOKS = Hooks("drain", "undrain")
NOTHING = Plan("gpu07", "lab", ())


def test_the_machine_that_hostwright_runs_on_keeps_its_power(start):
    world = World([answers(xid(79))])
    record = start(world, local=True)
    assert (record.outcome, world.done) == ("failed", [])
    assert "Hostwright never reboots the machine on which it runs" in record.sentence


def test_the_machine_that_hostwright_runs_on_is_not_called_rebuilt_before_its_reboot(start):
    pending = Plan(
        "gpu07", "lab", (RolePlan("driver", (), (Reboot("nouveau", "loaded", "gone", "nouveau is bound"),)),)
    )
    world = World([answers(differs=("driver",))], left=pending)
    record = start(world, local=True)
    assert (record.outcome, world.done[:1], "verify" in world.done) == ("handed over", ["provision"], False)
    assert "this machine needs a reboot (nouveau is bound)" in record.sentence


def failed(what: str = "it broke") -> HostError:
    return HostError("gpu07", what)


def test_what_differs_is_repaired_verified_and_then_given_back(start):
    world = World([answers(differs=("cuda",))])
    record = start(world, hooks=HOOKS)
    assert (record.outcome, record.ways, world.done) == ("rebuilt", ("repair",), ["provision", "verify", "undrain"])
    assert [name for name, _ in record.phases] == ["diagnose", "reboot", "provision", "verify", "undrain"]
    assert next(event.phase for event in world.events if isinstance(event, PhaseEnded)) == "diagnose"


def test_a_host_as_desired_is_verified_and_left_alone(start):
    world = World([answers()])
    record = start(world, hooks=HOOKS)
    assert (record.outcome, world.done) == ("as desired", ["verify"])


def test_a_host_as_desired_that_is_drained_is_given_back(start):
    world = World([answers()], facts=Facts({**FREE, hostdrained.DRAINED: Answer(0, "{}")}))
    assert start(world, hooks=HOOKS).outcome == "as desired"
    assert world.done == ["verify", "undrain"]


def test_work_does_not_come_back_to_a_host_whose_checks_fail(start):
    world = World([answers(differs=("cuda",))], checks=[[BAD], [BAD]])
    record = start(world, hooks=HOOKS)
    assert record.outcome == "handed over"
    assert "undrain" not in world.done
    assert record.ways == ("repair", "relayer", "hand over")
    assert "a check of driver fails: it works" in record.sentence


def asked(world: World, *errors: HostError) -> dict[str, Any]:
    """Something that is asked beside the checks, and fails so."""
    world.fails["prove"] = list(errors)
    return {"accept": SimpleNamespace(accept=lambda *_, **__: world.do("prove")), "hooks": HOOKS}


def test_a_host_is_given_back_after_it_was_proved(start):
    world = World([answers(differs=("cuda",))])
    record = start(world, **asked(world))
    assert (record.outcome, world.done) == ("rebuilt", ["provision", "verify", "prove", "undrain"])
    assert [name for name, _ in record.phases][-3:] == ["verify", "prove", "undrain"]


def test_a_host_whose_proof_fails_stays_drained_and_no_harder_way_is_tried(start):
    world = World([answers(differs=("cuda",))], facts=Facts({**FREE, hostdrained.DRAINED: Answer(0, "{}")}))
    error = NotAccepted("gpu07", "its proof cuda.memory failed: word 7 was 0", exit_status=3)
    record = start(world, **asked(world, error))
    assert (record.outcome, record.sentence, record.ways) == ("failed", error.sentence, ("repair",))
    assert world.done == ["provision", "verify", "prove"]


def test_a_host_whose_proof_fails_is_drained_if_it_was_not(start):
    """A repair that disturbs nobody takes no work off; what computes wrongly must not get any more."""
    error = NotAccepted("gpu07", "its proof cuda.memory failed: word 7 was 0", exit_status=3)
    world = World([answers(differs=("cuda",))])
    record = start(world, **asked(world, error))
    assert (record.outcome, record.sentence) == ("failed", error.sentence)
    assert world.done == ["provision", "verify", "prove", "drain"]


def test_a_host_that_cannot_be_drained_ends_with_the_reason_of_its_proof(start):
    error = NotAccepted("gpu07", "its proof cuda.memory failed: word 7 was 0", exit_status=3)
    world = World([answers(differs=("cuda",))])
    settings = asked(world, error)
    world.fails["drain"] = [HostError("gpu07", "scontrol: no such node")]
    record = start(world, **settings)
    assert (record.outcome, record.sentence) == ("failed", error.sentence)
    notes = [event.text for event in world.events if isinstance(event, Note)]
    assert "the host could not be drained: scontrol: no such node" in notes


def test_a_host_whose_checks_fail_is_not_proved(start):
    world = World([answers(differs=("cuda",))], checks=[[BAD], [BAD]])
    assert start(world, **asked(world)).outcome == "handed over"
    assert "prove" not in world.done


def test_a_check_that_fails_for_a_known_problem_says_which(start):
    known = KNOWN.explained("nvidia-smi: Failed to initialize NVML: Driver/library version mismatch")
    bad = replace(BAD, finding=known)
    record = start(World([answers(differs=("cuda",))], checks=[[bad], [bad]]))
    assert known is not None
    assert f"a check of driver fails: it works: {known.cause}. {known.cure}" in record.sentence
    assert "version-mismatch" in record.rules


def test_a_repair_that_fails_is_followed_by_what_was_announced(start):
    world = World([answers(differs=("driver",))], fails={"provision": [failed()]})
    record = start(world)
    assert (record.outcome, record.ways) == ("rebuilt", ("repair", "relayer"))
    assert world.done == ["provision", "remove", "provision", "verify"]
    notes = [event.text for event in world.events if isinstance(event, Note)]
    assert notes[0] == "repair failed: it broke"
    assert notes[1].startswith("relayer: the host was repaired, but a problem remains: ")


@pytest.mark.parametrize("error", [Refused("gpu07", "the GPU is in use"), ArtifactError("no such file")])
def test_what_is_refused_is_not_tried_in_a_harder_way(start, error):
    """A busy GPU, or a file that is not here, is no reason to take a stack away."""
    world = World([answers(differs=("driver",))], fails={"provision": [error]})
    record = start(world)
    assert (record.outcome, record.ways, world.done) == ("failed", ("repair",), ["provision"])
    assert "lock" not in world.done


def test_nothing_is_taken_away_when_it_could_not_be_laid_again(start, monkeypatch: pytest.MonkeyPatch):
    world = World([answers(finding("driver-versions-mixed"), differs=("driver",))])
    monkeypatch.setattr(HostRebuild, "_require_files", lambda self: (_ for _ in ()).throw(ArtifactError("no .run")))
    record = start(world)
    assert (record.outcome, record.sentence, world.done) == ("failed", "no .run", [])


def test_after_the_power_the_host_is_looked_at_again(start):
    world = World([silent(), answers(differs=("cuda",))])
    record = start(world)
    assert (record.ways, world.done) == (("power cycle", "repair"), ["power cycle", "provision", "verify"])


def test_changed_key_is_trusted_on_purpose_then_probed_again(start):
    error = HostKeyMismatch("gpu07", "it shows another key")
    changed = Diagnosis("gpu07", "key changed", error.sentence, power="on")
    world = World([changed, answers(differs=("base",))], error=error)
    record = start(world)
    assert (record.ways, world.done) == (("trust", "repair"), ["trust", "provision", "verify"])


def test_a_key_that_nobody_vouches_for_leaves_the_host_alone(start):
    error = HostKeyMismatch("gpu07", "it shows another key")
    changed = Diagnosis("gpu07", "key changed", error.sentence, power="on")
    world = World([changed], error=error, fails={"trust": [Refused("gpu07", "nobody to ask")]})
    record = start(world)
    assert (record.outcome, record.sentence, world.done) == ("failed", "nobody to ask", ["trust"])


def test_broken_hardware_is_drained_locked_and_handed_over(start):
    world = World([answers(finding("row-remap-failed"))])
    record = start(world, hooks=HOOKS)
    assert (record.outcome, world.done) == ("handed over", ["drain", "lock"])
    assert "the host is locked until" in record.sentence
    assert "row-remap-failed" in record.rules


def test_the_same_xid_after_two_power_cycles_is_the_hardwares(start):
    world = World([answers(xid(79))])
    record = start(world)
    assert record.ways == ("power cycle", "power cycle", "hand over")
    assert world.done == ["power cycle", "power cycle", "lock"]


def test_a_silent_host_without_help_is_kept_locked_on_this_machine(start, tmp_path: Path):
    world = World([silent(power=None)])
    record = start(world, bmc=False)
    lock = locallocks.get(tmp_path, INVENTORY, "gpu07")
    assert record.outcome == "handed over"
    assert lock is not None
    assert "does not answer" in lock.reason
    assert "locked on this machine" in record.sentence


def test_an_installation_that_fails_locks_and_looks_no_further(start, tmp_path: Path):
    """What answers after it may be the installer itself."""
    world = World([silent(can_reinstall="redfish")], fails={"install": [failed("it never ended")]})
    record = start(world, "reinstall")
    assert (record.outcome, record.ways, world.done) == ("failed", ("reinstall",), ["before the install", "install"])
    assert record.sentence.startswith("it never ended; the host is locked on this machine")
    assert locallocks.get(tmp_path, INVENTORY, "gpu07") is not None


def test_a_locked_host_is_not_touched(start):
    """It is locked, which is another result than failed; there is nothing to record."""
    world = World([answers(differs=("cuda",))], facts=LOCKED)
    with pytest.raises(Locked, match="locked by bo@desk"):
        start(world)
    assert world.done == []


def test_a_locked_host_is_not_even_drained_when_its_hardware_is_broken(start):
    world = World([answers(finding("row-remap-failed"))], facts=LOCKED)
    assert start(world, hooks=HOOKS).outcome == "failed"
    assert world.done == []


def test_a_full_disk_is_cleaned_before_the_repair(start):
    world = World([answers(finding("no-space"), differs=("cuda",))])
    assert start(world).outcome == "rebuilt"
    assert world.done == ["clean", "provision", "verify"]


def test_a_stop_is_no_failure_of_the_host(start):
    world = World([answers(differs=("cuda",))], stopped=True)
    with pytest.raises(Stopped):
        start(world)
    assert world.done == []


def test_step_failures_are_failures(start):
    error = StepFailed("gpu07", "a step failed", None)  # type: ignore[arg-type]
    world = World([answers(differs=("cuda",))], fails={"provision": [error, error]})
    assert start(world).outcome == "handed over"


BUSY = Facts({**FREE, HOLDERS: Answer(0, "4711 - python\n")})
CARD = finding("gpu-lost", "card at 0000:3b:00: GPU has fallen off the bus")


def container(policy: str) -> Facts:
    """A host whose only work is a container without a GPU."""
    return Facts({**FREE, CONTAINERS: Answer(0, f"spared false\nboots\n900 {'d' * 64} /db {policy}\n")})


@pytest.mark.parametrize(
    ("way", "facts", "named"),
    [
        ("power cycle", BUSY, "python (4711)"),
        ("reinstall", BUSY, "python (4711)"),
        ("power cycle", container("no"), f"container {'d' * 12} (pid 900) db"),
        ("reinstall", container("always"), f"container {'d' * 12} (pid 900) db"),
    ],
)
def test_work_is_not_ended_unasked(start, way, facts: Facts, named: str, tmp_path: Path):
    """Nor is the host locked for it, or the refusal taken for a power cycle."""
    installs = way == "reinstall"
    world = World([answers(can_reinstall="redfish") if installs else answers(CARD)], facts=facts)
    record = start(world, "reinstall" if installs else None)
    assert (record.outcome, record.ways, world.done) == ("failed", (), [])
    assert named in record.sentence
    assert locallocks.get(tmp_path, INVENTORY, "gpu07") is None


def test_a_container_that_docker_starts_again_holds_up_no_power_cycle(start):
    world = World([answers(CARD), answers()], facts=container("always"))
    assert start(world).outcome == "rebuilt"
    assert world.done == ["power cycle", "verify"]


def test_with_drain_work_is_awaited_before_the_power_is_cut(start, monkeypatch: pytest.MonkeyPatch):
    world = World([answers(CARD), answers()], facts=BUSY)
    monkeypatch.setattr(draining, "wait_until_idle", lambda *_: world.do("wait"))
    record = start(world, hooks=HOOKS, drain=True)
    assert world.done == ["drain", "wait", "power cycle", "verify"]
    assert record.outcome == "rebuilt"


def test_work_that_does_not_end_is_no_reason_for_a_lock(start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    world = World([answers(CARD)], facts=BUSY, fails={"wait": [failed("the GPU is still in use")]})
    monkeypatch.setattr(draining, "wait_until_idle", lambda *_: world.do("wait"))
    record = start(world, hooks=HOOKS, drain=True)
    assert (record.outcome, record.ways, world.done) == ("failed", (), ["drain", "wait"])
    assert "lock" not in record.sentence


def test_what_an_earlier_run_began_is_not_cut(start):
    running = Answer(0, "run-0.driver {}\n")
    world = World([answers(CARD)], facts=Facts({**FREE, jobs.RUNNING: running}))
    assert jobs.running(world.facts or FREE)
    record = start(world)
    assert (record.outcome, world.done) == ("failed", [])
    assert "a job from an earlier run is still running" in record.sentence


def test_what_forbids_an_installation_locks_nobody_out(start, tmp_path: Path):
    """A file that is missing here, a port that is taken: the host has not been touched."""
    world = World(
        [answers(can_reinstall="redfish")], fails={"before the install": [HostwrightError("the port is in use")]}
    )
    record = start(world, "reinstall")
    assert (record.outcome, record.sentence) == ("failed", "the port is in use")
    assert locallocks.get(tmp_path, INVENTORY, "gpu07") is None


def test_ignored_bmc_command_ends_the_rebuild_with_a_lock(start, tmp_path: Path):
    world = World([silent()], fails={"power cycle": [OrderFailed("gpu07", "the BMC refuses to do that")]})
    record = start(world)
    assert (record.outcome, record.ways) == ("failed", ("power cycle",))
    assert record.sentence.startswith("the BMC refuses to do that; the host is locked on this machine")
    assert world.looked == 1


def test_host_lost_during_work_is_not_locked(start, tmp_path: Path):
    world = World([answers(differs=("cuda",)), silent()], fails={"provision": [failed("the connection was lost")]})
    record = start(world)
    assert (record.outcome, record.ways, world.done) == ("failed", ("repair",), ["provision"])
    assert "run the same command again" in record.sentence
    assert locallocks.get(tmp_path, INVENTORY, "gpu07") is None


def test_after_an_installation_its_provisioning_is_no_reason_for_a_lock(start, tmp_path: Path):
    world = World([silent(can_reinstall="redfish")], fails={"provision": [failed("no mirror answers")]})
    record = start(world, "reinstall")
    assert (record.outcome, record.sentence) == ("failed", "no mirror answers")
    assert locallocks.get(tmp_path, INVENTORY, "gpu07") is None


def test_a_host_that_waited_for_its_turn_is_looked_at_again(start, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Phases, "go_on", lambda self: 3600.0)
    came_back = World([silent(), answers()])
    assert (start(came_back).ways, came_back.done) == (("nothing",), ["verify"])
    fell_ill = World([answers(differs=("cuda",)), silent()])
    record = start(fell_ill)
    assert (record.outcome, fell_ill.done) == ("failed", [])
    assert "the announced rebuild was: repair; the host now needs: power cycle" in record.sentence
    the_same = World([silent(), silent(), answers()])
    assert start(the_same).ways == ("power cycle", "nothing")


def test_host_hung_in_a_repair_reboot_is_power_cycled(start):
    world = World(
        [answers(differs=("driver",)), silent(), answers()], fails={"provision": [NotBack("gpu07", "it is not back")]}
    )
    record = start(world)
    assert (record.outcome, record.ways) == ("rebuilt", ("repair", "power cycle", "nothing"))
