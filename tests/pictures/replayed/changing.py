"""Hosts that are planned for, brought to their goal, or diagnosed and rebuilt."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.pictures.hosts import KINDS
from tests.pictures.replayed.call import NOUVEAU, NOW, hold, pause, plan_of, verb

TAIL = (
    "Building module:",
    "Error! Bad return status for module build on kernel: 5.10.0-28-amd64 (x86_64)",
    "Consult /var/lib/dkms/nvidia/470.182.03/build/make.log for more information.",
)
RUN_ID = "20261124-031500-ada-4711"


def operator_lock(host: str, reason: str = "RMA of card 3") -> Any:
    """Somebody else's lock."""
    from hostwright.plan.host.locks import OperatorLock

    return OperatorLock("ada@desk", reason, host, NOW, NOW + timedelta(hours=8))


def examination() -> Any:
    """What a host on which something failed was found to have."""
    from hostwright.common.errors import Examination
    from tests.unit.support.audits import WARNING, XID

    return Examination((XID, WARNING), "2 known problems found on the host (136 signs searched for)")


def play(self: Any) -> Any:
    """A host that is brought to its goal: ``HostApply.apply``."""
    from hostwright.apply.events import Note, Observed, Rebooted, Waiting
    from hostwright.apply.host.outcome import Outcome
    from hostwright.common.errors import Locked
    from hostwright.plan.host import locks
    from hostwright.plan.model import Answer, Facts, Plan, RolePlan

    emit, name, kind = self._emit, self.name, KINDS[self.name]
    emit(Waiting(name, "a connection"))
    if kind == "unreachable":
        self._connect()
    if kind == "locked":
        known = Facts({locks.LOCK: Answer(0, f"there\n{operator_lock(name).to_json()}\n")})
        raise Locked(name, locks.refusal(known, NOW))
    emit(Waiting(name, "its answers"))
    pause()
    plan = plan_of(self._desired)
    emit(Observed(name, plan))
    done = [_role(self, role, number) for number, role in enumerate(plan.roles)]
    reboots = int(kind in {"changed", "bare"} and verb() not in {"remove", "serve.up", "images.push"})
    if reboots and plan.roles:
        emit(Note(name, f"rebooting: {NOUVEAU}"))
        pause()
        emit(Rebooted(name, NOUVEAU, 43.0))
    left = Plan(name, plan.stack)
    if kind == "pending":
        left = Plan(name, plan.stack, tuple(RolePlan(role.role, (), role.changes[:1]) for role in plan.roles[:1]))
    emit(Observed(name, left))
    return Outcome(name, plan, tuple(done), left, reboots if plan.roles else 0)


def _role(self: Any, role: Any, number: int) -> Any:
    from hostwright.apply.events import Delivering, RoleFinished, RoleProgress, RoleStarted
    from hostwright.apply.jobs.scripting import Progress
    from hostwright.plan.model import RoleResult, StepResult

    emit, name, kind = self._emit, self.name, KINDS[self.name]
    steps, files = role.steps, self._desired.stack.artifacts
    for artifact in role.artifacts[:1]:
        size = (files[artifact].size if artifact in files else None) or 400_000_000
        for tenth in (1, 6, 10):
            emit(Delivering(name, role.role, artifact, size * tenth // 10, size))
            pause()
    emit(RoleStarted(name, role.role, len(steps)))
    for at, (change, _) in enumerate(steps):
        emit(RoleProgress(name, role.role, Progress(at, change.what, f"Setting up {change.what} …")))
        if number == 1 and at == 0 and kind in {"changed", "pending"}:
            hold()
        if kind == "failed" and number == min(2, number) and at == len(steps) - 1 and _fails(self, number):
            failed = RoleResult(role.role, 10, 4.2, (StepResult(at, change.what, 10, 4.2, "\n".join(TAIL)),))
            emit(RoleFinished(name, role.role, failed))
            raise _failure(name, role.role, change.what)
    pause()
    results = tuple(StepResult(at, change.what, 0, 1.4) for at, (change, _) in enumerate(steps))
    result = RoleResult(role.role, 0, 1.4 * len(steps), results)
    emit(RoleFinished(name, role.role, result))
    return result


def _fails(self: Any, number: int) -> bool:
    """Whether this is the role that fails: the third one, or the last of fewer."""
    return bool(number == min(2, len(plan_of(self._desired).roles) - 1))


def _failure(host: str, role: str, what: str) -> Any:
    from hostwright.common.errors import FailedStep, StepFailed

    step = FailedStep(role, what, "sh …", 10, TAIL)
    error = StepFailed(host, f"{role}, {what}: the step ended with status 10: {TAIL[1]}", step)
    error.examination = examination()
    return error


def planned(self: Any, target: Any, emit: Any = lambda _: None, *, desired: Any = None) -> Any:
    """``Connections.plan``."""
    from hostwright.apply.events import Observed
    from hostwright.common.errors import HostError
    from hostwright.plan.planning import HostPlan

    kind = KINDS[target.name]
    if kind == "unreachable":
        self.connect(target)
    if kind == "failed" and verb() in {"plan", "rollback"}:
        raise HostError(target.name, "sudo asks for a password, and none was given: use --ask-become-pass")
    plan = plan_of(desired or target.desired)
    if verb() == "verify" and kind != "bare":
        plan = replace(plan, roles=plan.roles[1:2] if kind == "pending" else ())
    notes = (str(operator_lock(target.name)),) if kind == "locked" else ()
    host_plan = HostPlan(plan, (), notes, provisioned=kind != "bare")
    emit(Observed(target.name, plan))
    return host_plan


def decided(self: Any) -> Any:
    """``HostRebuild.diagnose``."""
    from hostwright.rebuild.ways.ways import STEPS, Decision

    kind = KINDS[self.name]
    way, reason = {
        "as desired": ("nothing", "the host is as desired"),
        "changed": ("repair", "the layers cuda and driver differ from its stack"),
        "bare": ("repair", "it was never provisioned"),
        "pending": ("power cycle", "it hangs: its sshd accepts and says nothing"),
        "failed": ("hand over", "its hardware is broken: Xid 79 on card 0 (0000:3b:00): a GPU fell off the bus"),
        "unreachable": ("power on", "it does not answer, and its BMC reports that it is off"),
        "locked": ("nothing", str(operator_lock(self.name))),
    }[kind]
    escalation = ("relayer",) if way == "repair" else ()
    refusal = reason if kind in {"failed", "locked"} else ""
    steps = () if kind == "locked" else STEPS.get(way, ("drain", "reboot it over SSH", "wait until it answers"))
    return Decision(way, (reason,), steps, escalation, refusal, (way.replace(" ", "-"),))


def rebuilt(self: Any, decision: Any) -> Any:
    """``HostRebuild.run``."""
    from hostwright.apply.events import Note, Phase, Waiting
    from hostwright.common.errors import Locked
    from hostwright.common.operator import operator
    from hostwright.rebuild.rebuild import Rebuild

    emit, name = self._emit, self.name
    if KINDS[name] == "locked":
        raise Locked(name, decision.refusal)
    phases = {
        "nothing": {"diagnose": 2.1, "verify": 14.0},
        "repair": {"diagnose": 2.3, "drain": 1.0, "provision": 84.0, "verify": 21.0, "undrain": 0.4},
        "power cycle": {"diagnose": 9.0, "reboot": 61.0, "provision": 40.0, "verify": 21.0},
        "power on": {"diagnose": 10.0, "power": 55.0, "provision": 40.0, "verify": 20.0},
        "hand over": {"diagnose": 3.0},
    }[decision.way]
    for phase, took_s in phases.items():
        emit(Waiting(name, phase))
        pause()
        if phase == "provision":
            hold()
        emit(Phase(name, phase, took_s))
    if decision.way == "hand over":
        emit(Note(name, "locked: its hardware is broken"))
    outcome = {"nothing": "as desired", "hand over": "handed over"}.get(decision.way, "rebuilt")
    sentence = f"{decision.reasons[0]}; it is drained and locked" if outcome == "handed over" else ""
    return Rebuild(name, RUN_ID, NOW, operator(), (decision.way,), outcome, sentence, decision.reasons,
                   decision.rules, tuple(phases.items()), sum(phases.values()))  # fmt: skip
