"""All errors that Hostwright raises on purpose, in one hierarchy.

``str(error)`` is the sentence for the operator: where, what happened, and what to do now. ``exit_status`` is that of
the command. An ``InputError`` ends the command before any host is touched; a ``HostError`` ends the work on its host
and on no other.

>>> error = InputError("found 'ten', expected a number of seconds such as 10", "hosts.yml:4")
>>> print(error)
hosts.yml:4: found 'ten', expected a number of seconds such as 10
>>> error = Unreachable("gpu01", "gpu01:22 refuses the connection: is sshd running there?", passing=True)
>>> print(error)
gpu01: gpu01:22 refuses the connection: is sshd running there?
>>> error.exit_status, error.host, error.passing
(1, 'gpu01', True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from hostwright.common.command import Command

AS_DESIRED, FAILED, BAD_INPUT, DIFFERS, INTERRUPTED = 0, 1, 2, 3, 130  #: exit statuses of commands
NOBODY_READS = 141  #: likewise, what a shell shows for a program that SIGPIPE (13) ended: 128 + 13

NOT_IN_TIME = "a probe did not answer"  #: how the sentence of a ``NotAnswered`` begins
_SCRIPT_CHARACTERS = 80  #: of a script, to tell which it is


def worst(statuses: Iterable[int]) -> int:
    """The exit status of several together: 1 before 3, and 0 where all are 0.

    >>> worst([0, 3, 1]), worst([0, 3]), worst([])
    (1, 3, 0)
    """
    return min((status for status in statuses if status != AS_DESIRED), default=AS_DESIRED)


def described(error: BaseException) -> str:
    """The kind of an error of a user's Python file, and what it says.

    >>> described(NameError("name 'x' is not defined")), described(SystemExit(0))
    ("NameError: name 'x' is not defined", 'SystemExit: it ends the program with 0')
    """
    if isinstance(error, SystemExit):
        return f"SystemExit: it ends the program with {error.code!r}"
    return f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"


class HostwrightError(Exception):
    """Base of every error that Hostwright raises on purpose; ``str(error)`` is the operator's sentence.

    It can be pickled with all that it carries, for work that is done in another process.
    """

    exit_status = FAILED
    #: the verb that leads on from it, with its options (``rebuild --check``), or an option with which the same verb may
    #: succeed (``--ask-become-pass``); empty where nothing of ours does
    lead = ""

    def __reduce__(self) -> tuple[Callable[..., HostwrightError], tuple[Any, ...]]:
        return _remade, (type(self), self.args, dict(self.__dict__))


def _remade(kind: type[HostwrightError], args: tuple[Any, ...], fields: dict[str, Any]) -> HostwrightError:
    """The error that was pickled: a kind's own ``__init__`` takes other arguments than ``args``."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


def led(lead: str, failed: Command) -> Command | None:
    """The command that a ``lead`` names, after one that failed. ``None``: nothing leads on.

    >>> print(led("rebuild --check", Command("plan")), led("--ask-become-pass", Command("plan")))
    `invoke rebuild --check` `invoke plan --ask-become-pass`
    """
    words = lead.split()
    if not words:
        return None
    command = failed if words[0].startswith("--") else Command(words.pop(0))
    return command.also(**{word.lstrip("-").replace("-", "_"): True for word in words})


class InputError(HostwrightError):
    """Something that a user wrote is wrong: inventory, stack, option. No host was touched.

    ``where`` is ``file:line`` or the option's name; it is printed before the ``sentence``.
    """

    exit_status = BAD_INPUT

    def __init__(self, message: str, where: str | None = None):
        super().__init__(f"{where}: {message}" if where else message)
        self.where = where
        self.sentence = message


class InputErrors(InputError):
    """Several mistakes in users' files at once, one per line; ``errors`` has each."""

    def __init__(self, errors: list[InputError]):
        super().__init__("\n".join(str(error) for error in errors))
        self.errors = tuple(errors)


class Mistakes:
    """Collects the ``InputError`` of each block, so that a user sees all mistakes at once and not one per attempt.

    >>> mistakes = Mistakes()
    >>> for value in ("10", "ten", "eleven"):
    ...     with mistakes:
    ...         if not value.isdigit():
    ...             raise InputError(f"found {value!r}, expected a number", "hosts.yml:4")
    >>> mistakes.refuse()
    Traceback (most recent call last):
    hostwright.common.errors.InputErrors: hosts.yml:4: found 'ten', expected a number
    hosts.yml:4: found 'eleven', expected a number
    """

    def __init__(self) -> None:
        self._found: dict[str, InputError] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> bool:
        if not isinstance(error, InputError):
            return False
        for mistake in error.errors if isinstance(error, InputErrors) else (error,):
            self._found.setdefault(str(mistake), mistake)
        return True

    @property
    def found(self) -> tuple[InputError, ...]:
        """All mistakes so far, each once."""
        return tuple(self._found.values())

    def refuse(self) -> None:
        """Raise ``InputErrors`` with all mistakes, each once; do nothing if there are none."""
        if self._found:
            raise InputErrors(list(self._found.values()))


class ArtifactError(HostwrightError):
    """A file of the stack is missing, has the wrong checksum, or cannot be fetched."""

    lead = "mirror"


class LabError(HostwrightError):
    """The lab cannot be brought up, or a lab host does not do what it should."""


class HostError(HostwrightError):
    """Something failed on, or on the way to, one host."""

    examination: Examination | None = None  #: what the host was found to have after it
    acceptance: tuple[Acceptance, ...] = ()  #: what came of all that was asked of the host once it was as desired

    def __init__(self, host: str, message: str):
        super().__init__(f"{host}: {message}")
        self.host = host
        self.sentence = message

    def retell(self, message: str) -> None:
        """Say it in other words, now that more is known."""
        self.sentence, self.args = message, (f"{self.host}: {message}",)


class Unreachable(HostError):
    """No SSH session could be opened: name resolution, connection, host key, authentication, timeout.

    ``passing`` is true for a failure that may be transient (a connection refused, reset or lost), and false for one
    that stays until somebody fixes it (a host key, a login).
    """

    def __init__(self, host: str, message: str, *, passing: bool = False, lead: str | None = None):
        super().__init__(host, message)
        self.passing = passing
        self.lead = ("rebuild --check" if passing else "") if lead is None else lead


class BecomeError(HostError):
    """The login user cannot become root: no sudo, a wrong or missing password, not in sudoers."""

    def __init__(self, host: str, message: str, *, lead: str = ""):
        super().__init__(host, message)
        self.lead = lead


class ProtocolError(HostError):
    """The host's output is not that of the program which was sent to it: cut off, too large, or another text."""


class NotAnswered(HostwrightError, KeyError):
    """A probe that hung and was ended is asked for its answer: nothing is known of what it asks, neither yes nor no."""

    def __init__(self, script: str, seconds: int):
        line = next((line for line in script.splitlines() if line and "=" not in line.split(" ")[0]), script)
        self.sentence = f"{NOT_IN_TIME} within {seconds} s: {line[:_SCRIPT_CHARACTERS]}"
        super().__init__(self.sentence)

    def __str__(self) -> str:
        return self.sentence


class Refused(HostError):
    """The host must not be changed: a rule forbids it, or something that a change needs is missing."""


class Locked(Refused):
    """Another run is changing the host, or an operator has locked it; the sentence says who, and until when. It is left
    as it was, which is no failure."""

    exit_status = DIFFERS


class Unanswered(Refused):
    """The plan takes something away that nobody can bring back, and no operator has agreed to that."""


class Stopped(HostError):
    """The operator stopped the run (Ctrl-C): what was running on the host has ended, the rest was not started."""


class ExecutorLost(Stopped):
    """Whoever worked on the host is gone, and nobody is left who could go on: the run stops. ``because`` says why."""

    def __init__(self, host: str, because: str, then: str):
        super().__init__(host, f"{because}; {then}")
        self.because = because


@dataclass(frozen=True, slots=True)
class Finding:
    """A known failure that was recognised; ``evidence`` is the host's own output that shows it.

    ``grave``: work fails or will fail; otherwise it is a warning. ``provision``: whether ``invoke provision`` fixes it.
    ``link`` is the command that explains it.
    """

    rule: str
    layer: str
    grave: bool
    evidence: tuple[str, ...]
    cause: str
    cure: str
    provision: bool
    link: str


@dataclass(frozen=True, slots=True)
class UnitJournal:
    """The last lines that a systemd unit logged: one that a failure named (``named``), or one that that needs and that
    failed itself. ``last`` are its program's own last words."""

    named: str
    unit: str
    lines: tuple[str, ...]
    last: str


@dataclass(frozen=True, slots=True)
class Examination:
    """What a host answered when it was asked, after a failure, for the signs of known problems; ``sentence`` says what
    was looked at, and what could not be. ``journals`` are those to which the failure only points.
    """

    findings: tuple[Finding, ...]
    sentence: str
    journals: tuple[UnitJournal, ...] = ()
    not_checked: tuple[str, ...] = ()  #: the rules whose signs the host gave no answer about


@dataclass(frozen=True, slots=True)
class FailedStep:
    """The step that failed, with what an operator needs to understand it without logging in."""

    role: str
    what: str  #: the change that it belongs to (``file /etc/motd``), or the site's command for draining
    command: str  #: its script
    status: int  #: its exit status
    tail: tuple[str, ...] = field(default=())  #: the last lines that it printed
    known: Finding | None = None  #: the known problem that its output names
    units: tuple[str, ...] = ()  #: whose journal its output says to read


class StepFailed(HostError):
    """One step of a role ended with an exit status other than 0; ``step`` says which."""

    def __init__(self, host: str, message: str, step: FailedStep):
        super().__init__(host, message)
        self.step = step


class ScriptFailed(HostError):
    """A root program of Hostwright's own, such as one that writes a record, ended with a status other than zero.

    ``lines`` are the last lines of its standard error.
    """

    def __init__(self, host: str, failure: str, status: int, lines: tuple[str, ...] = ()):
        super().__init__(host, f"{failure}: {lines[-1] if lines else f'exit status {status} (no error output)'}")
        self.status = status
        self.lines = lines


class SeveralFailed(HostError):
    """Several roles of a host failed, since roles that do not need each other run in parallel, or several changes that
    stand alone; ``errors`` has each."""

    def __init__(self, host: str, errors: list[HostwrightError]):
        self.errors = tuple(errors)
        super().__init__(host, self.joined())

    def joined(self) -> str:
        """The sentences of all of them, as one."""
        sentences = [error.sentence if isinstance(error, HostError) else str(error) for error in self.errors]
        return f"{len(sentences)} failures: " + " · ".join(sentences)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What came of one thing that was asked of a host once it was as desired: ``network.dense``, ``failed``, why."""

    name: str
    outcome: str
    sentence: str = ""


class NotAccepted(HostError):
    """The host is as desired, but does not hold what else is asked of it before it counts as done.

    ``exit_status`` is 3 where something was tried and failed, and 1 where something could not be tried.
    """

    def __init__(self, host: str, message: str, acceptance: tuple[Acceptance, ...] = (), *, exit_status: int = FAILED):
        super().__init__(host, f"it is as desired, but {message}")
        self.acceptance = acceptance
        self.exit_status = exit_status


class NotConverged(HostError):
    """Every step succeeded, but a new probe still finds differences from what is wanted."""
