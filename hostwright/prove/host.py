"""Runs the proofs of one host: probes the host, excludes proofs that must not run now, runs the other proofs as one
job, and judges their figures.

During the proofs, the host is locked. The proofs do not change the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from hostwright.apply.events import Note, Observed
from hostwright.apply.host.connection import HostConnection
from hostwright.apply.host.jobrunner import JobLost, JobRunner
from hostwright.apply.locking.runlock import HostLock
from hostwright.apply.run import Run
from hostwright.audit.judging.audited import cards_of
from hostwright.audit.judging.context import AuditContext, Unread
from hostwright.common.command import Command
from hostwright.common.errors import Locked, NotAnswered, ProtocolError
from hostwright.common.text import count, short
from hostwright.common.untrusted import whole
from hostwright.plan import probing
from hostwright.plan.facts.expected import GPUS, read_expected_gpus, read_expected_models
from hostwright.plan.host import jobs, locks
from hostwright.plan.model import Facts, Probe, RoleResult
from hostwright.plan.observing import ask
from hostwright.plan.planning import HostPlan, plan_host
from hostwright.plan.probing import ordered
from hostwright.plan.roles.role import Role, providers, reading_cards
from hostwright.plan.targets import TargetHost
from hostwright.prove import reading
from hostwright.prove.fleetproof import HostProof
from hostwright.prove.job import ProgramEnd, ended, job_plan
from hostwright.prove.judging import judged
from hostwright.prove.model import Expected, Measurements, Outcome, Proof, ProofResult, Watch
from hostwright.transport.root.rootshell import RootShell

PART: Final = "proofs"  #: name of the Python module with the proofs of a role
#: maximum number of probes of the host while jobs of earlier runs are running (our choice)
MOST_FOLLOWED = 8

#: probe that prints the model name of the processor, and the number of processors
PROCESSOR = Probe("sed -n 's/^model name[[:space:]]*: *//p' /proc/cpuinfo | head -n 1; nproc", cap_bytes=1024)


def proofs_of(target: TargetHost) -> tuple[Proof, ...]:
    """Return the proofs of the host's roles, then the proofs of GPU roles that one of the host's roles replaces."""
    own = tuple(proof for role in target.roles for proof in _proofs(role, target, target.variables[role.name]))
    others = (role for role in reading_cards(target.all_roles) if role not in target.roles)
    provided = ((role, one.name) for role in others for one in providers(role.name, target.roles))
    return *own, *(
        replace(proof, layer=name) for role, name in provided for proof in _proofs(role, target, role.variables())
    )


def _proofs(role: Role, target: TargetHost, variables: object) -> tuple[Proof, ...]:
    part = role.part(PART)
    return part.proofs(variables, target.context) if part and hasattr(part, "proofs") else ()


def watch_of(target: TargetHost) -> str:
    """Return the script that prints the temperatures of the host's cards, from the scripts of all roles."""
    parts = (role.part(PART) for role in target.all_roles or target.roles)
    watches = (getattr(part, "WATCH", None) for part in parts if part is not None)
    return "\n".join(watch.script for watch in watches if isinstance(watch, Watch))


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of a host before its proofs: its plan, cards, processor, running jobs, and programs that use its
    cards.
    """

    planned: HostPlan
    expected: Expected
    users: tuple[str, ...]
    running: tuple[jobs.RunningJob, ...]
    facts: Facts
    unread: str = ""  #: error text if the cards could not be read, else empty


class HostProve:
    """Runs the proofs of one host, from connecting to judging. The caller must call ``close`` at the end."""

    def __init__(
        self,
        run: Run,
        target: TargetHost,
        proofs: Sequence[Proof],
        later: Sequence[Proof] = (),
        *,
        locked: bool = False,
    ):
        """Prepare to run ``proofs`` on the host ``target``.

        ``later`` are further proofs that the run starts on this host afterwards. With ``locked``, the run already holds
        the host's lock.
        """
        self._target, self._emit = target, run.emit
        self._holder = None if locked else run.holder(target.name)
        self._proofs, self._later = tuple(proofs), tuple(later)
        self._connection = HostConnection(target.name, lambda: run.connections.connect(target), emit=run.emit)
        self._runner = JobRunner(self._connection, run)
        self._lock: HostLock | None = None

    def close(self) -> None:
        """Release the host's lock and close the connection."""
        if self._lock is not None:
            self._lock.release()
        self._connection.close()

    def prove(self) -> HostProof:
        """Run the proofs, and judge the figures of each proof on their own. Raises ``HostError`` if the host is locked
        or cannot be read.
        """
        at = datetime.now(UTC)
        first = self._look()
        self._refuse_locked(first.facts)
        self._take_lock()
        seen = self._look()  # The host is probed again, because the lock's previous owner may have changed the host.
        self._emit(Observed(self._target.name, seen.planned.plan, seen.facts))
        held = {proof.key: held_back(proof, seen) for proof in (*self._proofs, *self._later)}
        due = [proof for proof in self._proofs if not held[proof.key]]
        ran = self._run(due, seen) if due else {}
        results = tuple(
            _not_run(proof, *held[proof.key]) if held[proof.key] else ran[proof.key]  # type: ignore[misc]
            for proof in (*self._proofs, *(proof for proof in self._later if held[proof.key]))
        )
        return HostProof(
            self._target.name,
            self._target.stack.name,
            at.isoformat(timespec="seconds"),
            "",
            results,
            seen.expected.processor,
            first.planned.notes,
            self._target.stand_ins,
        )

    def _look(self) -> Seen:
        """Wait until jobs of earlier runs on the host have ended, and return the host's state."""
        for _ in range(MOST_FOLLOWED):
            seen = look(self._target, self._connection.use(self._ask), datetime.now(UTC))
            if not seen.running:
                return seen
            if self._holder is not None and (holder := locks.living(seen.facts, self._holder)) is not None:
                raise Locked(self._target.name, locks.held_by(holder))
            for job in seen.running[: jobs.MOST_RUNNING]:
                self._follow(job)
        raise ProtocolError(self._target.name, "new running jobs keep appearing; check the jobs on the host")

    def _follow(self, job: jobs.RunningJob) -> None:
        try:
            self._runner.attach(job)
        except JobLost as lost:
            self._emit(Note(self._target.name, lost.sentence))

    def _ask(self, shell: RootShell) -> Facts:
        return ask(shell, probes_of(self._target))

    def _refuse_locked(self, facts: Facts) -> None:
        if refused := locks.refusal(facts, datetime.now(UTC)):
            raise Locked(self._target.name, refused)

    def _take_lock(self) -> None:
        holder = self._holder
        if holder is not None:
            note = lambda text: self._emit(Note(self._target.name, text))  # noqa: E731
            self._lock = self._connection.use(lambda shell: HostLock.acquire(shell, holder, notify=note))

    def _run(self, due: Sequence[Proof], seen: Seen) -> dict[str, ProofResult]:
        nonce = probing.new_nonce()
        watch = watch_of(self._target) if seen.expected.cards else ""
        plan = job_plan(due, nonce, watch)
        result: RoleResult = self._runner.execute(plan, ())
        steps = {step.number: step for step in result.steps}
        results = {}
        for number, proof in enumerate(due):
            step = steps.get(number)
            results[proof.key] = (
                ended_result(proof, ended(step, nonce), seen.expected)
                if step is not None
                else _not_run(proof, "not run", "the job on the host ended before this proof")
            )
        return results


def probes_of(target: TargetHost) -> tuple[Probe, ...]:
    """Return all probes that run before proofs."""
    cards = (probe for part in cards_of(target) for probe in part.probes)
    return ordered([*target.desired.probes(), *cards, PROCESSOR])


def look(target: TargetHost, facts: Facts, at: datetime) -> Seen:
    """Return the state of a host with these facts at the time ``at``, before its proofs."""
    planned = plan_host(target.desired, facts, at)
    view = AuditContext(target.desired, target.variables, facts, {}, at, cards_of(target))
    cards, unread = None, ""
    try:
        cards = view.gpus
    except Unread as error:
        unread = str(error)
    processor, _, number = facts[PROCESSOR].strip().partition("\n") if PROCESSOR in facts else ("", "", "")
    expected = Expected(
        target.name,
        cards,
        read_expected_gpus(target.host),
        sum(_on_bus(part.on_bus, facts) for part in cards_of(target)),
        short(processor),
        whole(number.strip()) or 0,
        read_expected_models(target.host),
    )
    return Seen(planned, expected, target.occupancy.users(facts), jobs.running(facts), facts, unread)


def _on_bus(count: Callable[[Facts], int], facts: Facts) -> int:
    try:
        return count(facts)
    except NotAnswered:
        return 0


def held_back(proof: Proof, seen: Seen) -> tuple[Outcome, str] | None:
    """Return outcome and reason if ``proof`` must not run on a host in the state ``seen``; ``None`` if it may run."""
    differs = [role.role for role in seen.planned.plan.roles if role.role in {proof.layer, "preflight"}]
    if differs:
        return "not run", f"{proof.layer} is not as desired; run {Command('provision', hosts=seen.expected.host)}"
    if seen.users and (seen.expected.cards or seen.expected.cards_on_bus):
        return "not run", f"in use by {short(', '.join(seen.users))}; repeat the proof when the host is idle"
    if proof.needs_gpu and not seen.expected.cards:
        if seen.expected.cards_on_bus:
            return "not run", f"the cards of the host cannot be read: {seen.unread or 'the driver names none'}"
        if lost := seen.expected.gpus:
            text = f"the inventory says that the host has {count(lost, 'GPU')} ({GPUS})"
            return "failed", f"{text}, and none is on its PCI bus"
        return "no GPU", "no GPU in this host"
    return None


def _not_run(proof: Proof, outcome: Outcome, sentence: str) -> ProofResult:
    return ProofResult(proof.key, outcome, sentence, sha256=proof.program.sha256)


def ended_result(proof: Proof, end: ProgramEnd, expected: Expected) -> ProofResult:
    """Return the result of ``proof`` from ``end``, the end of the proof's program."""
    printed = reading.read(end.text)
    text = f": {end.stderr[-1]}" if end.stderr else ""
    watched = replace(printed, measurements=Measurements((*printed.measurements, *end.hottest)))
    base = judged(proof, watched, expected, end.took_s)
    if end.unbuilt:
        return replace(base, outcome="not run", sentence=f"the program could not be built{text}")
    if end.stopped:
        return replace(base, outcome="failed", sentence=f"the proof was stopped: {end.stopped}")
    if end.status is None:
        return replace(base, outcome="not run", sentence=f"the proof was interrupted{text}")
    if end.status in {124, 137} and end.took_s >= proof.time_limit_s:
        return replace(base, outcome="failed", sentence=f"the proof exceeded its limit of {proof.time_limit_s:g} s")
    if end.status != 0 and not printed.errors:
        return replace(base, outcome="failed", sentence=f"the program ended with status {end.status}{text}")
    return base
