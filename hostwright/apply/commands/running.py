"""Runs one command on many hosts in parallel, as one recorded run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime

from hostwright.apply.commands.remote import CommandResult, Lifeline, RemoteCommand, run_command
from hostwright.apply.events import Emit, HostEnded, Note, RoleFinished, RoleStarted, Waiting
from hostwright.apply.journal import records
from hostwright.apply.locking.operatorlock import probe_locks
from hostwright.apply.locking.runlock import HostLock
from hostwright.apply.rollout.limits import STOPPED_BY_OPERATOR, read_limits
from hostwright.apply.rollout.rollout import Results, roll_out
from hostwright.apply.run import Run, RunResults
from hostwright.common.command import Command
from hostwright.common.errors import AS_DESIRED, FAILED, INTERRUPTED, Locked, Stopped
from hostwright.common.text import short
from hostwright.plan.host import locks
from hostwright.plan.model import RoleResult, StepResult
from hostwright.plan.targets import TargetHost
from hostwright.transport.root.rootshell import RootShell

LEFT_ENDED = "stopped; the commands were killed"
LEADS_ON = f". {Command('runs.show', run='{run}', steps=True)} shows what they printed"
MOST_BYTES = 1 << 20  #: maximum number of bytes of a command's output from one host (our choice)
ALL_BYTES = 256 << 20  #: maximum number of bytes of a command's output from all hosts, kept in memory (our choice)
LEAST_BYTES = 64 << 10  #: minimum number of bytes of output allowed for one host, even with very many hosts
RECORDED_CHARACTERS = 64 << 10  #: number of characters from the end of each host's output that the journal contains
_STEP = "command"


def run_on_hosts(run: Run, command: RemoteCommand) -> RunResults[CommandResult]:
    """Run ``command`` on each host of a run.

    After Ctrl-C, the running commands are killed, and no others are started. The exit status is 0 if all commands
    exited with 0.
    """
    limits, connections = read_limits(run.request, len(run.targets)), run.connections
    own = {"command": command.text, "root": command.root, "timeout_s": command.limit_s}
    with run.begun(LEFT_ENDED, LEADS_ON, own), _Commands(run, command) as commands:
        results = roll_out(
            tuple(run.targets.by_name),
            commands.on,
            limits=limits,
            emit=run.emit,
            stop=connections.close,
            on_interrupt=commands.stop,
            detach=connections.detach,
            silent=run.silent,
            not_responding=connections.not_responding,
            result=_word,
        )
        status = _status(results)
        return run.end(results, status, how=records.INTERRUPTED if status == INTERRUPTED else records.ENDED)


class _Commands:
    def __init__(self, run: Run, command: RemoteCommand):
        self._run, self._command = run, command
        self._cap_bytes = max(LEAST_BYTES, min(MOST_BYTES, ALL_BYTES // max(1, len(run.targets))))
        self._lock = threading.Lock()
        self._lines: set[Lifeline] = set()
        self._stopping = False

    def __enter__(self) -> _Commands:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        with self._lock:
            self._stopping = True
            for line in self._lines:
                line.stop()

    def on(self, name: str) -> CommandResult:
        target, emit = self._run.targets.by_name[name], self._run.emit
        emit(Waiting(name, "a connection"))
        with self._run.connections.connect(target) as shell, ExitStack() as held:
            emit(Waiting(name, "its answers"))
            if self._command.root:
                held.enter_context(self._locked(shell, target))
            lifeline = self._begin(name)
            held.callback(self._lines.discard, lifeline)
            emit(RoleStarted(name, _STEP, 1))
            result = run_command(shell, self._command, lifeline, self._cap_bytes)
        _tell(result, self._command, emit)
        return result

    def _begin(self, name: str) -> Lifeline:
        lifeline = Lifeline()
        with self._lock:
            if self._stopping:
                raise Stopped(name, f"{STOPPED_BY_OPERATOR} before the command began")
            self._lines.add(lifeline)
        return lifeline

    def _locked(self, shell: RootShell, target: TargetHost) -> HostLock:
        force = self._run.request.force
        why_not = "" if force else locks.refusal(probe_locks(shell), datetime.now(UTC))
        if why_not:
            raise Locked(target.name, why_not)
        # This call raises an error if sudo does not work, before the lock is requested.
        shell.run(":", timeout_s=30.0, failure="root cannot run a program on the host")
        note: Callable[[str], None] = lambda text: self._run.emit(Note(target.name, text))  # noqa: E731
        return HostLock.acquire(shell, self._run.holder(target.name), notify=note)


def _tell(result: CommandResult, command: RemoteCommand, emit: Emit) -> None:
    output = "\n".join(part for part in (result.stdout.rstrip("\n"), result.stderr.rstrip("\n")) if part)
    status = FAILED if result.status is None else result.status
    step = StepResult(1, short(command.text), result.status, result.duration_s, output[-RECORDED_CHARACTERS:])
    emit(RoleFinished(result.host, _STEP, RoleResult(_STEP, status, result.duration_s, (step,))))
    emit(HostEnded(result.host, _word(result), "" if result.passed else sentence_of(result, command)))


def sentence_of(result: CommandResult, command: RemoteCommand) -> str:
    """Return how a command ended, as text, such as ``exit 9`` or ``killed after 60 s``."""
    match result.end:
        case "exited":
            return f"exit {result.status}"
        case "time limit":
            return f"killed after {command.limit_s:g} s (--timeout)"
        case "output limit":
            return "killed after too much output"
        case "stopped":
            return STOPPED_BY_OPERATOR


def _word(result: CommandResult) -> str:
    if result.end == "stopped":
        return "stopped"
    return "ran" if result.passed else "failed"


def _status(results: Results[CommandResult]) -> int:
    if results.stopped_because == STOPPED_BY_OPERATOR:
        return INTERRUPTED
    passed = all(result.passed for result in results.values)
    return AS_DESIRED if passed and not results.errors and not results.untouched else FAILED
