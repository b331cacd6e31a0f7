"""``hostwright`` on hosts that replay: everything of the controller is real, what a host does is a recording.

    python -m tests.pictures.replay ORDERS

reads orders from that pipe, a JSON object a line (``words``, ``env``, ``status``, and ``into`` for a
file that standard output goes to), and carries each out in a process
forked from this one, since most of what a verb takes is imports; its exit status goes to the file ``status``.

Replaced is what talks to one host, and no more: plans are made by the real planner from the facts of a bare host, runs
are rolled out, journalled and shown as ever. A host that is unreachable is a real connection to a closed port, and
``run`` is a real login. With ``PICTURES_HOLD`` hosts that are being changed stop in the middle until that file exists.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from tests.pictures.hosts import KINDS
from tests.places import PROJECT

NOW = datetime.now(UTC).replace(microsecond=0)
VERB = ""  #: of this process
HOLD = ""  #: the file that lets hosts go on
FACTS = ("debian", "11")
STEP_S = 0.02  #: between two things that happen on a host, so that a terminal has something to redraw


def removed(role: Any) -> Any:
    """What taking a layer away changes."""
    from hostwright.plan.model import Change, RolePlan, Step

    record = Change(f"what {role.name} brought", "installed", "absent", (Step("true"), Step("true")))
    return RolePlan(role.name, (), (record,))


@cache
def roles_of(stack: str, verb: str, key: int) -> tuple[Any, ...]:
    """The plan of a bare host, by the real planner; of ``remove``, each layer once."""
    from hostwright.plan.host.hostfacts import AVX, OS_RELEASE, PCI, PYTHONS, UNAME
    from hostwright.plan.model import Answer, Facts
    from hostwright.plan.planning import make_plan
    from tests.unit.support.planned import HOSTS

    desired = DESIRED[key]
    if verb == "remove":
        return tuple(removed(part) for part in reversed(ROLES[key]))
    kernel, pythons = HOSTS[FACTS]
    texts = {
        OS_RELEASE: f"ID={FACTS[0]}\nVERSION_ID={FACTS[1]}\n",
        UNAME: f"{kernel} x86_64\n",
        PCI: "0x10de 0x030200 0x1eb8\n",
        AVX: "",
        PYTHONS: "".join(f"/usr/bin/python{python} {python}\n" for python in pythons),
    }
    facts = Facts({one: Answer(0, texts[one]) if one in texts else Answer(1, "") for one in desired.probes()})
    return make_plan(desired, facts).roles


DESIRED: dict[int, Any] = {}
ROLES: dict[int, Any] = {}
KEYS: dict[tuple[str, tuple[str, ...]], int] = {}
OF_HOST: dict[str, int] = {}


def learn(member: Any) -> None:
    """Remember what is wanted of a host; hosts of the same stack and roles share one plan."""
    key = KEYS.setdefault((member.stack.name, tuple(role.name for role in member.roles)), len(KEYS))
    if key not in DESIRED:
        DESIRED[key], ROLES[key] = member.desired, tuple(member.roles)
    OF_HOST[member.name] = key


def plan_of(name: str, stack: str) -> Any:
    """The plan of a host of its kind."""
    from hostwright.plan.model import Plan

    differs = KINDS[name] in {"changed", "pending", "failed"} or VERB == "remove"
    return Plan(name, stack, roles_of(stack, VERB, OF_HOST[name]) if differs else ())


class Shell:
    """In the place of a root shell on a host that answers: every program ends well and prints nothing."""

    def __init__(self, host: str) -> None:
        from types import SimpleNamespace

        self.host = host
        self.session = SimpleNamespace(noise=b"", noise_note="")

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""

    def attempt(self, _script: str, **_: object) -> Any:
        from hostwright.transport.exchange import Output

        return Output(0, b"", b"", False, 0.0)

    run = attempt


def pause() -> None:
    time.sleep(STEP_S)


def hold() -> None:
    """Stop in the middle, where a picture is wanted of that."""
    while HOLD and not Path(HOLD).exists():
        time.sleep(0.05)


def finding() -> Any:
    from tests.unit.support.audits import XID

    return XID


def play(self: Any, _saved: Any = None) -> Any:
    """A host that is brought to its goal: ``HostApply.apply``."""
    from hostwright.apply.events import (
        Delivering,
        Note,
        Observed,
        Rebooted,
        RoleFinished,
        RoleProgress,
        RoleStarted,
        Waiting,
    )
    from hostwright.apply.host.outcome import Outcome
    from hostwright.apply.jobs.scripting import Progress
    from hostwright.common.errors import FailedStep, Locked, StepFailed
    from hostwright.plan.model import Plan, RolePlan, RoleResult, StepResult

    emit, name, kind = self._emit, self.name, KINDS[self.name]
    emit(Waiting(name, "a connection"))
    if kind == "unreachable":
        self._connect()
    if kind == "locked":
        raise Locked(name, "locked by ada@desk until 18:00 (RMA of card 3): `invoke unlock` takes that away")
    emit(Waiting(name, "its answers"))
    pause()
    plan = plan_of(name, self._desired.stack.name)
    emit(Observed(name, plan))
    done, files = [], self._desired.stack.artifacts
    for number, role in enumerate(plan.roles):
        steps = role.steps
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
            if kind == "failed" and number == 2 and at == len(steps) - 1:
                tail = (
                    "Building module:",
                    "Error! Bad return status for module build on kernel: 5.10.0-28-amd64 (x86_64)",
                    "Consult /var/lib/dkms/nvidia/470.182.03/build/make.log for more information.",
                )
                failed = RoleResult(role.role, 10, 4.2, (StepResult(at, change.what, 10, 4.2, "\n".join(tail)),))
                emit(RoleFinished(name, role.role, failed))
                step = FailedStep(role.role, change.what, "sh …", 10, tail, finding())
                raise StepFailed(
                    name, f"role {role.role} failed at step {at + 1} of {len(steps)} ({change.what})", step
                )
        pause()
        results = tuple(StepResult(at, change.what, 0, 1.4) for at, (change, _) in enumerate(steps))
        done.append(RoleResult(role.role, 0, 1.4 * len(steps), results))
        emit(RoleFinished(name, role.role, done[-1]))
    if kind == "changed" and VERB != "remove":
        emit(Note(name, "rebooting: the module nouveau is loaded"))
        pause()
        emit(Rebooted(name, "the module nouveau is loaded", 43.0))
    left = Plan(name, plan.stack)
    if kind == "pending":
        left = Plan(name, plan.stack, tuple(RolePlan(role.role, (), role.changes[:1]) for role in plan.roles[:1]))
    emit(Observed(name, left))
    return Outcome(name, plan, tuple(done), left, int(kind == "changed" and VERB != "remove"))


def planned(self: Any, member: Any, emit: Any = lambda _: None, *, desired: Any = None) -> Any:
    """``Connections.plan``."""
    from hostwright.apply.events import Observed
    from hostwright.common.errors import HostError
    from hostwright.plan.planning import HostPlan

    learn(member)
    kind = KINDS[member.name]
    if kind == "unreachable":
        self.connect(member)
    if kind == "failed" and VERB in {"plan", "rollback"}:
        raise HostError(member.name, "sudo asks for a password, and none was given: use --ask-become-pass")
    plan = plan_of(member.name, member.stack.name)
    if VERB == "verify" and kind != "pending":
        from dataclasses import replace

        plan = replace(plan, roles=())
    notes = ("locked by ada@desk until 18:00: RMA of card 3",) if kind == "locked" else ()
    host_plan = HostPlan(plan, (), notes)
    emit(Observed(member.name, plan))
    return host_plan


def checks(self: Any, member: Any, _password: Any) -> Any:
    """``Checks.of``."""
    from hostwright.verify.verdict import Check

    hold()
    bad = KINDS[member.name] == "failed"
    return tuple(
        Check(
            role.name,
            f"test_{role.name}_{number}",
            f"{role.name} does what it is there for, check {number}.",
            not (bad and role.name == "driver" and number == 1),
            0.4,
            "nvidia-smi ended with 9: NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver. "
            "Make sure that the latest NVIDIA driver is installed and running."
            if bad and role.name == "driver" and number == 1
            else "",
        )
        for role in member.roles
        for number in (1, 2)
    )


def audited(member: Any, connect: Any, *, sudo: bool = True) -> Any:
    """``audit_host``."""
    from dataclasses import replace

    from hostwright.audit.judging.judging import unread
    from hostwright.common.errors import HostError
    from tests.unit.support import audits

    kind = KINDS[member.name]
    at = NOW.isoformat()
    if kind == "unreachable":
        try:
            connect(member)
        except HostError as error:
            return unread(member, error.sentence, NOW), None
    hold()
    how: dict[str, Any] = {
        "as desired": {},
        "changed": {"status": "drift", "layers": {"cuda": "drift"}, "deviations": (audits.LINK,)},
        "pending": {"layers": {"cuda": "warning"}, "findings": (audits.WARNING,)},
        "failed": {
            "status": "failing",
            "layers": {"gpu": "failing"},
            "findings": (audits.XID,),
            "xids": (audits.LOST,),
        },
        "locked": {"status": "new", "layers": {"base": "new"}, "record": None, "notes": ("locked by ada: RMA",)},
    }[kind]
    return replace(audits.host(member.name, **how), stack=member.stack.name, at=at), None


def proved(self: Any) -> Any:
    """``HostProve.prove``."""
    from hostwright.prove.fleetproof import HostProof
    from hostwright.prove.model import Measurement, ProofFinding, ProofResult

    name, kind = self._member.name, KINDS[self._member.name]
    if kind == "unreachable":
        self._connection.use(lambda _: None)
    hold()
    results = []
    for proof in (*self._proofs, *self._later):
        bad = kind == "failed" and not results
        value = Measurement("matmul float32", 4.1 if bad else 8.2, "Tflop/s", "GPU-6e2c1f (Tesla T4)", "more")
        found = (
            (ProofFinding("4.1 Tflop/s, half of what its twins do: is the card hot, or in a slot with fewer lanes?",
                          "GPU-6e2c1f (Tesla T4)", "failed", "4.1", "8.2", proof.key),)
            if bad else ()
        )  # fmt: skip
        outcome = "failed" if bad else "not run" if kind == "locked" else "passed"
        why = "4.1 Tflop/s, half of what its twins do" if bad else "no compiler is there" if kind == "locked" else ""
        results.append(ProofResult(proof.key, outcome, why, 12.5, "0" * 64, (value,), found))
    member = self._member
    return HostProof(name, member.stack.name, NOW.isoformat(), "", tuple(results), "AMD EPYC 7543", (),
                     member.stand_ins)  # fmt: skip


def decided(self: Any) -> Any:
    """``HostRebuild.diagnose``."""
    from hostwright.rebuild.ways.ways import STEPS, Decision

    kind = KINDS[self.name]
    way, reason = {
        "as desired": ("nothing", "it is as desired"),
        "changed": ("repair", "the layers cuda and driver differ from its stack"),
        "pending": ("power cycle", "it hangs: its sshd accepts and says nothing"),
        "failed": ("hand over", "its hardware is broken: Xid 79 on card 0 (0000:3b:00): a GPU fell off the bus"),
        "unreachable": ("power on", "it does not answer, and its BMC reports that it is off"),
        "locked": ("repair", "drift"),
    }[kind]
    escalation = ("relayer",) if way == "repair" else ()
    refusal = reason if way == "hand over" else ""
    steps = STEPS.get(way, ("drain", "reboot it over SSH", "wait until it answers"))
    return Decision(way, (reason,), steps, escalation, refusal, (way.replace(" ", "-"),))


def rebuilt(self: Any, decision: Any) -> Any:
    """``HostRebuild.carry_out``."""
    from hostwright.apply.events import Note, Phase, Waiting
    from hostwright.common.operator import operator
    from hostwright.rebuild.rebuild import Rebuild

    emit, name = self._emit, self.name
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


RUN_ID = "20261124-031500-ada-4711"


class Fleet:
    """What is replaced of ``hostwright.fleet.Fleet`` as a whole: verbs of which only the view matters here."""

    @staticmethod
    def power(_self: Any, members: Any, order: Any, **_: Any) -> Any:
        from hostwright.apply.rollout.recording import RunResults
        from hostwright.apply.rollout.rollout import Results
        from hostwright.rebuild.bmc import BmcError, Power, Status
        from hostwright.rebuild.orders import Powered

        values, errors = [], []
        for member in members:
            if KINDS[member.name] == "unreachable":
                errors.append(
                    BmcError(member.name, "its BMC at http://127.0.0.1:9 does not answer: connection refused")
                )
                continue
            state = {"off": Power.OFF}.get(order.name, Power.ON)
            status = Status(state, "PowerEdge R7525", "Dell Inc.", f"7XK{len(values):04}", "2.12.4", "OK")
            if KINDS[member.name] == "failed":
                status = Status(
                    Power.OFF, "PowerEdge R7525", "Dell Inc.", "7XK9999", "2.12.4", "Critical", "Pxe (Once)"
                )
            console = f"ipmitool -I lanplus -H bmc-{member.name}.example.org -U admin sol activate"
            values.append(Powered(member.name, order.name, Power.ON, status, (), console))
        return RunResults("", Results(tuple(values), tuple(errors)), int(bool(errors)))

    @staticmethod
    def locks(_self: Any, members: Any, **_: Any) -> Any:
        return Fleet._locks(members, lambda lock: (lock, lock), {"locked", "failed"})

    @staticmethod
    def lock(_self: Any, members: Any, reason: str, *_: Any, **__: Any) -> Any:
        return Fleet._locks(members, lambda lock: (lock, None), set(KINDS.values()), reason)

    @staticmethod
    def unlock(_self: Any, members: Any, **_: Any) -> Any:
        return Fleet._locks(members, lambda lock: (None, lock), {"locked", "failed"})

    @staticmethod
    def _locks(members: Any, pair: Any, which: Any, reason: str = "RMA of card 3") -> Any:
        from hostwright.apply.locking.hostlocks import HostLocks
        from hostwright.apply.rollout.rollout import Results
        from hostwright.common.errors import Unreachable
        from hostwright.plan.host.locks import OperatorLock

        values, errors = [], []
        for member in members:
            if KINDS[member.name] == "unreachable":
                errors.append(Unreachable(member.name, "127.0.0.1:4711 refuses the connection (login as root): is sshd "
                                                       "running there?"))  # fmt: skip
                continue
            lock = OperatorLock("ada@desk", reason, member.name, NOW, NOW + timedelta(hours=8))
            now, before = pair(lock) if KINDS[member.name] in which else (None, None)
            values.append(HostLocks(member.name, now, before, None))
        return Results(tuple(values), tuple(errors))

    @staticmethod
    def removal(fleet: Any, members: Any) -> Any:
        from hostwright.apply.rollout.removal import Former, Formers, Removal

        for member in members:
            learn(member)
        return Removal(fleet, Formers({member.name: Former(member.name) for member in members}, {}))

    @staticmethod
    def ways_back(_self: Any, members: Any, _to: str = "") -> Any:
        from hostwright.apply.rollout.rollback import WayBack
        from hostwright.apply.rollout.rollout import Results
        from hostwright.common.errors import Refused

        none = tuple(
            Refused(member.name, "it has no release record: it was never verified, and there is nothing to go back to")
            for member in members
            if KINDS[member.name] == "failed"
        )
        ways = tuple(WayBack(member, member, "2026-11-20T09:12:00+00:00") for member in members)
        return Results(ways, none)


def stand_in() -> None:
    """Put the recordings in the place of the hosts."""
    from hostwright import fleet
    from hostwright.apply.host.applying import HostApply
    from hostwright.apply.host.connection import Patience
    from hostwright.apply.rollout import applying
    from hostwright.apply.rollout.connections import Connections
    from hostwright.audit import auditing, auditor
    from hostwright.plan.member import Member
    from hostwright.prove.host import HostProve
    from hostwright.rebuild.host.carrying import HostRebuild
    from hostwright.verify.checking import Checks

    connect, settings = Member.connect, applying.Work.settings

    def shell(self: Any, *more: Any) -> Any:
        learn(self)
        return connect(self, *more) if KINDS[self.name] == "unreachable" else Shell(self.name)

    def known(self: Any, member: Any) -> Any:
        learn(member)
        return settings(self, member)

    Member.connect = shell  # type: ignore[method-assign]
    applying.Work.settings = known  # type: ignore[method-assign]
    Patience.__init__.__defaults__ = (0.0, 0.0)  # type: ignore[misc]  # nobody waits for a closed port to open
    HostApply.apply = play  # type: ignore[method-assign]
    Connections.plan = planned  # type: ignore[method-assign]
    Checks.of = checks  # type: ignore[method-assign]
    Checks._start = Checks._stop = lambda *_, **__: None  # type: ignore[method-assign]
    auditing.audit_host = auditor.audit_host = audited
    HostProve.prove = proved  # type: ignore[method-assign]
    HostRebuild.diagnose, HostRebuild.carry_out = decided, rebuilt  # type: ignore[method-assign]
    for name in ("power", "locks", "lock", "unlock", "removal", "ways_back"):
        setattr(fleet.Fleet, name, getattr(Fleet, name))


def main(words: Sequence[str]) -> None:
    """The verb, as it is typed."""
    global VERB, HOLD  # of a process that carries out one verb  # noqa: PLW0603
    from hostwright.cli import program

    VERB = next((word for word in words if not word.startswith("-")), "")
    HOLD = os.environ.get("PICTURES_HOLD", "")
    if VERB not in {"run", "ssh", "trust"}:
        stand_in()
    sys.argv = ["hostwright", *words]
    program.main()


def carry_out(order: Mapping[str, Any]) -> None:
    """One order, in a process of its own."""
    child = os.fork()
    if not child:
        status = 1
        try:
            os.environ.update(order["env"])
            if order["into"]:
                os.dup2(os.open(order["into"], os.O_WRONLY | os.O_CREAT, 0o644), 1)
            main(order["words"])
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:  # noqa: BLE001 - a picture shows it
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    file = Path(order["status"])
    file.with_suffix(".new").write_text(str(os.waitstatus_to_exitcode(ended)))
    file.with_suffix(".new").rename(file)


def import_all() -> None:
    """What verbs import when they begin."""
    for root in ("apply", "audit", "cli", "plan", "prove", "rebuild", "stack", "transport", "verify"):
        for module in pkgutil.walk_packages([str(PROJECT / "hostwright" / root)], f"hostwright.{root}."):
            if ".skeleton" not in module.name and ".shells" not in module.name:
                importlib.import_module(module.name)
    importlib.import_module("tests.unit.support.audits")
    importlib.import_module("tests.unit.support.planned")


if __name__ == "__main__":
    import_all()
    with Path(sys.argv[1]).open(encoding="utf-8") as orders:
        for line in orders:
            carry_out(json.loads(line))
