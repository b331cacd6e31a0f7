"""Rebuild of one host: the repair that was decided, further repairs if it fails, and the time of each phase.

If a repair (``rebuild.Way``) fails, only the repairs that the decision announced may follow. Refusals are raised before
any change. If an order to a BMC or an installer fails, the host is locked with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hostwright.apply import events
from hostwright.apply.delivery.sources.settings import DIRECT, read_file_settings
from hostwright.apply.disturb import draining
from hostwright.apply.disturb.rebooting import NotBack
from hostwright.apply.host import applying, departure
from hostwright.apply.locking import locallocks, operatorlock
from hostwright.common.command import Command
from hostwright.common.errors import HostError, HostwrightError, Locked, NotAccepted, Refused, Stopped
from hostwright.common.operator import operator
from hostwright.common.places import state_root
from hostwright.common.text import printable
from hostwright.plan.desired import Desired
from hostwright.plan.host import drained as hostdrained
from hostwright.plan.host.locks import OperatorLock
from hostwright.plan.planning import removal_of
from hostwright.rebuild.host import freeing, powering
from hostwright.rebuild.host.clock import Phases
from hostwright.rebuild.host.tools import Tools
from hostwright.rebuild.rebuild import Outcome, Phase, Rebuild, Start, Way
from hostwright.rebuild.ways.diagnosis import Diagnosis
from hostwright.rebuild.ways.probing import ProbedHost, probe_host
from hostwright.rebuild.ways.ways import Decision, decide, decide_again
from hostwright.transport.identity.hostkeys import HostKeyMismatch

MAX_WAYS = 8  #: maximum number of repairs in one rebuild (our choice)
FRESH_S = 60.0  #: maximum age in seconds of a diagnosis. A host with an older diagnosis is diagnosed again.
POWER: tuple[Way, ...] = ("power on", "power cycle")
#: repair that ends all work on the host → description of the effect in messages
DISTURBS: Mapping[Way, str] = {"power cycle": "cuts its power", "reinstall": "wipes its disks"}


class HostRebuild:
    """The rebuild of one host, from the first diagnosis to its record."""

    def __init__(self, tools: Tools, start: Start | None = None):
        self._tools = tools
        self._start = start
        self._emit = tools.run.emit
        self._taken: list[Way] = []
        self._reasons: list[str] = []
        self._rules: list[str] = []
        self._failures: list[str] = []
        self._began = datetime.now(UTC)
        self._phases = Phases(on_end=lambda name, took_s: self._emit(events.Phase(self.name, name, took_s)))
        self._probed: ProbedHost | None = None
        self._went_down = False  #: whether the host did not answer after the last reboot
        self._half_done = False  #: whether the host has not answered since a power switch or reinstallation started

    @property
    def name(self) -> str:
        """Name of the host in the inventory."""
        return self._tools.target.name

    def diagnose(self) -> Decision:
        """Diagnose the host and decide how to rebuild it, without a change to the host."""
        decision = decide(self._look(), self._start)
        self._phases.rest()
        return decision

    def _look(self) -> Diagnosis:
        tools = self._tools
        with self._phases.phase("diagnose"):
            self._probed = probe_host(
                tools.target, tools.connect, tools.ways,
                history=tools.history, tried=tuple(self._taken),
            )  # fmt: skip
        if self._probed.diagnosis.reach == "answers":
            self._half_done = False
        return self._probed.diagnosis

    def run(self, decision: Decision) -> Rebuild:
        """Carry out the repair in ``decision``, and further repairs if it fails; return the record of the rebuild.

        The record contains the error of a failed rebuild. ``Stopped`` is raised instead if the operator stops the run,
        and ``Locked`` if a lock prevents the first repair.
        """
        try:
            outcome, sentence = self._run(decision)
        except Stopped:
            raise
        except HostwrightError as error:
            if isinstance(error, Locked) and not self._taken:
                raise
            outcome, sentence = "failed", error.sentence if isinstance(error, HostError) else str(error)
            if self._half_done:
                sentence = self._lock(sentence)
        return self._record(outcome, sentence)

    def _run(self, first: Decision) -> tuple[Outcome, str]:
        """Carry out the repair in ``first``, then further repairs until one succeeds.

        Raises ``HostError`` if no repair succeeds, or if the next repair is refused.
        """
        if self._phases.go_on() > FRESH_S:
            first = self._as_it_is_now(first)
        decision = first
        for _ in range(MAX_WAYS):
            self._note(decision, shown=decision is not first)
            if decision.way == "hand over":
                return "handed over", self._hand_over(decision)
            if decision.refusal:
                raise Refused(self.name, decision.refusal)
            self._go_on()
            self._require_free(decision.way)
            self._taken.append(decision.way)
            if self._took(decision):
                return ("as desired" if self._taken == ["nothing"] else "rebuilt"), ""
            decision = decide_again(first, self._look(), self._start, went_down=self._went_down)
        raise HostError(
            self.name, f"the host is still not as desired after {', '.join(self._taken)}; check its console"
        )

    def _as_it_is_now(self, shown: Decision) -> Decision:
        """Diagnose the host again; return a decision for the repair ``nothing`` if no repair is needed any more.

        Raises ``Refused`` if the host now needs another repair than ``shown``, the decision that the operator saw.
        """
        now = decide(self._look(), self._start)
        if now.way == shown.way:
            return replace(now, escalation=shown.escalation)
        if now.way == "nothing" and not now.refusal:
            return now
        was = f"the announced rebuild was: {shown.way}; the host now needs: {now.way} ({'; '.join(now.reasons)})"
        raise Refused(self.name, f"{was}; run the same command again")

    def _require_free(self, way: Way) -> None:
        probed = self._probed
        if probed is not None and probed.facts is not None:
            freeing.refuse_locked(self._tools, probed.facts)
        if way in POWER and self._tools.target.host.local:
            raise Refused(self.name, applying.OWN_REBOOT % "; ".join(self._reasons))
        if way in ("relayer", "reinstall"):
            self._require_files()
        if way in DISTURBS and probed is not None and probed.diagnosis.reach == "answers":
            freeing.free(self._tools, self._phases, DISTURBS[way], boots=way != "reinstall")

    def _took(self, decision: Decision) -> bool:
        """Carry out ``decision``. ``False`` means that the host must be diagnosed again."""
        self._went_down = False
        try:
            return self._take(decision.way, decision)
        except (Refused, Stopped, NotAccepted, powering.OrderFailed):
            raise  # No other repair helps, for example if the host computes wrong results.
        except HostError as error:
            if decision.way == "reinstall":
                raise  # The host may still be running the installer, so only the operator can decide.
            self._went_down = isinstance(error, NotBack)
            self._failures.append(f"{decision.way}: {error.sentence}")
            self._emit(events.Note(self.name, f"{decision.way} failed: {error.sentence}"))
            return False

    def _take(self, way: Way, decision: Decision) -> bool:
        match way:
            case "nothing":
                self._verify()
            case "repair":
                if decision.clean:
                    self._clean()
                self._provision()
            case "relayer":
                self._converge(removal_of(self._tools.target.desired, returned=False), "remove")
                self._provision()
            case "reinstall":
                self._tools.install("; ".join(decision.reasons), self._phases, self._begin)
                self._half_done = False
                self._provision()
            case "trust":
                self._trust()
                return False
            case _:
                self._power(way, decision)
                return False
        self._accept()
        self._back_to_work(changed=way != "nothing")
        return True

    def _require_files(self) -> None:
        """Raise ``ArtifactError`` if this machine lacks an artifact of the host."""
        target = self._tools.target
        if read_file_settings(target.host).way != DIRECT:
            for artifact in target.files_for(self._probed.facts if self._probed else None):
                self._tools.run.locate(artifact)

    def _clean(self) -> None:
        with self._phases.phase("remove"), self._tools.connect() as shell:
            departure.clean(shell, self._tools.target.artifacts)

    def _provision(self) -> None:
        self._converge(self._tools.target.desired, "provision")
        self._verify()

    def _converge(self, desired: Desired, phase: Phase) -> None:
        target = self._tools.target
        host = applying.HostApply(self._tools.run, applying.HostJob(target, desired, rebuilds=True))
        try:
            with self._phases.phase(phase):
                try:
                    left = host.apply().left
                finally:
                    host.close()
            if left is not None and left.reboot and target.host.local:
                raise HostError(self.name, applying.OWN_REBOOT % left.reboot)
        finally:
            self._phases.move(phase, "reboot", host.rebooted_s)

    def _verify(self) -> None:
        with self._phases.phase("verify"):
            bad = sorted(
                (check for check in self._tools.check() if not check.holds), key=lambda check: not check.checked
            )
        if bad:
            first = bad[0]
            more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            known = next((check.finding for check in bad if check.finding), None)
            because = f": {known.cause}. {known.cure}" if known else ""
            self._rules += [known.rule] if known and known.rule not in self._rules else []
            how = "fails" if first.checked else f"could not run ({first.why})"
            what = f"a check of {first.role} {how}: {first.sentence}{more}{because}"
            raise HostError(self.name, f"the host matches its stack, but {what}")

    def _accept(self) -> None:
        tools = self._tools
        if tools.accept is not None:
            try:
                with self._phases.phase("prove"):
                    tools.accept.accept(tools.run, tools.target, locked=False)
            except NotAccepted as error:
                self._keep_away(error.sentence)
                raise

    def _keep_away(self, reason: str) -> None:
        """Drain the host. If that fails, only a note is emitted."""
        try:
            freeing.keep_away(self._tools, self._phases, reason)
        except HostError as error:
            self._emit(events.Note(self.name, f"the host could not be drained: {error.sentence}"))

    def _power(self, way: Way, decision: Decision) -> None:
        before = self._probed.diagnosis.boot_id if self._probed else ""
        self._begin()
        powering.switch(self._tools, self._phases, way, by_bmc=decision.by != "ssh", boot_id=before)
        self._half_done = False

    def _begin(self) -> None:
        self._half_done = True

    def _trust(self) -> None:
        error = self._probed.error if self._probed else None
        if not isinstance(error, HostKeyMismatch):
            raise HostError(self.name, "the host presents the recorded host key; no other key needs to be accepted")
        self._tools.trust(error)

    def _back_to_work(self, *, changed: bool) -> None:
        """Run the site's command that returns the host to service, if the host is drained or ``changed``.

        Reason: a scheduler may have marked a changed host as down.
        """
        hooks = self._tools.hooks
        facts = self._probed.facts if self._probed else None
        drained = facts is not None and hostdrained.drained(facts) is not None
        if hooks is None or not (changed or drained):
            return
        with self._phases.phase("undrain"), self._tools.connect() as shell:
            draining.undrain(shell, hooks, freeing.context(self._tools, "rebuilt"), self._emit)

    def _hand_over(self, decision: Decision) -> str:
        self._taken.append("hand over")
        reason = "; ".join([*decision.reasons, *self._failures])
        if self._probed and self._probed.diagnosis.reach == "answers":
            try:
                freeing.probe_again(self._tools, self._phases)
                freeing.drain(self._tools, self._phases, reason)
            except Locked:
                raise
            except HostError as error:
                self._emit(events.Note(self.name, error.sentence))
        return self._lock(reason)

    def _lock(self, reason: str) -> str:
        tools = self._tools
        answers = self._probed is not None and self._probed.diagnosis.reach == "answers"
        return keep_locked(tools, reason, answers=answers)

    def _go_on(self) -> None:
        if self._tools.run.stopping.is_set():
            raise Stopped(self.name, f"stopped by the operator after {', '.join(self._taken) or 'the diagnosis'}")

    def _note(self, decision: Decision, *, shown: bool) -> None:
        self._reasons += [entry for entry in decision.reasons if entry not in self._reasons]
        self._rules += [entry for entry in decision.rules if entry not in self._rules]
        if shown:
            self._emit(events.Note(self.name, f"{decision.way}: {'; '.join(decision.reasons)}"))

    def _record(self, outcome: Outcome, sentence: str) -> Rebuild:
        run = self._tools.run.stamp
        return Rebuild(
            host=self.name, run=run.id, at=self._began, operator=run.operator, ways=tuple(self._taken),
            outcome=outcome, sentence=sentence, reasons=tuple(self._reasons), rules=tuple(self._rules),
            phases=self._phases.taken, total_s=self._phases.total_s,
        )  # fmt: skip


#: duration of a lock after a failed rebuild: enough time to replace a card
FOR = timedelta(weeks=4)
REASON_CHARACTERS = 200  #: maximum number of characters of the reason in a lock


def keep_locked(tools: Tools, reason: str, *, answers: bool) -> str:
    """Lock a host because of ``reason``: on the host if it ``answers``, else on this machine.

    Returns a sentence with the reason and the place of the lock, or with the error. Never raises an error.
    """
    now = datetime.now(UTC).replace(microsecond=0)
    name = tools.target.name
    lock = OperatorLock(operator(), _line(f"rebuild: {reason}"), name, now, now + FOR)
    where = ""
    if answers:
        try:
            with tools.connect() as shell:
                operatorlock.put_lock(shell, lock)
            where = "the host is locked"
        except HostError:
            answers = False
    if not answers:
        try:
            locallocks.put(state_root(), tools.run.roster.path, lock, now=now)
            where = "the host is locked on this machine"
        except HostwrightError as error:
            return f"{reason}; and locking it failed: {error}"
    return f"{reason}; {where} until {lock.until:%Y-%m-%d} ({Command('unlock', hosts=name)} removes the lock)"


def _line(text: str) -> str:
    line = " ".join(printable(text).split())
    return line if len(line) <= REASON_CHARACTERS else f"{line[: REASON_CHARACTERS - 1]}…"
