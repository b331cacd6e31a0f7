"""All errors that Hostwright raises on purpose.

``str(error)`` is the message for the operator: where, what happened, and what to do. ``exit_status`` is the exit status
of the command. An ``InputError`` ends the command before any host is changed. A ``HostError`` ends only the work on one
host.

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

AS_DESIRED, FAILED, BAD_INPUT, DIFFERS, INTERRUPTED = 0, 1, 2, 3, 130  #: exit statuses of verbs
NOBODY_READS = 141  #: exit status of a process that SIGPIPE (signal 13) ended: 128 + 13

NOT_IN_TIME = "a probe did not answer"  #: first words of the message about a probe that hung
_SCRIPT_CHARACTERS = 80  #: maximum number of characters of a shell script in a message


def worst(statuses: Iterable[int]) -> int:
    """Combine several exit statuses into one: 0 if all are 0, else the lowest nonzero status.

    >>> worst([0, 3, 1]), worst([0, 3]), worst([])
    (1, 3, 0)
    """
    return min((status for status in statuses if status != AS_DESIRED), default=AS_DESIRED)


def described(error: BaseException) -> str:
    """Describe an error that a user's Python file raised: its type and its message.

    >>> described(NameError("name 'x' is not defined")), described(SystemExit(0))
    ("NameError: name 'x' is not defined", 'SystemExit: the file calls sys.exit(0)')
    """
    if isinstance(error, SystemExit):
        return f"SystemExit: the file calls sys.exit({error.code!r})"
    return f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"


class HostwrightError(Exception):
    """Base class of every error that Hostwright raises on purpose. ``str(error)`` is the message for the operator.

    An error keeps all its attributes when it is pickled.
    """

    exit_status = FAILED
    #: command to run after this error, or option for the failed verb; may be empty
    lead = ""

    def __reduce__(self) -> tuple[Callable[..., HostwrightError], tuple[Any, ...]]:
        return _remade, (type(self), self.args, dict(self.__dict__))


def _remade(kind: type[HostwrightError], args: tuple[Any, ...], fields: dict[str, Any]) -> HostwrightError:
    """Restore a pickled error of class ``kind`` without ``__init__``, whose parameters differ from ``args``."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


def led(lead: str, failed: Command) -> Command | None:
    """Return the command that ``lead`` describes: a verb with options, or only options to add to ``failed``.

    ``failed`` is the command that raised the error. An empty ``lead`` gives ``None``.

    >>> print(led("rebuild --check", Command("plan")), led("--ask-become-pass", Command("plan")))
    `invoke rebuild --check` `invoke plan --ask-become-pass`
    """
    words = lead.split()
    if not words:
        return None
    command = failed if words[0].startswith("--") else Command(words.pop(0))
    return command.also(**{word.lstrip("-").replace("-", "_"): True for word in words})


class InputError(HostwrightError):
    """A mistake of a user in an inventory, stack or option. No host was changed.

    ``where`` is ``file:line`` or the name of an option. In the message, ``where`` precedes ``sentence``.
    """

    exit_status = BAD_INPUT

    def __init__(self, message: str, where: str | None = None):
        super().__init__(f"{where}: {message}" if where else message)
        self.where = where
        self.sentence = message


class InputErrors(InputError):
    """Several mistakes of users in one error. The message has one line for each mistake."""

    def __init__(self, errors: list[InputError]):
        super().__init__("\n".join(str(error) for error in errors))
        self.errors = tuple(errors)


class Mistakes:
    """Collects the ``InputError`` that each ``with`` block raises, to report all mistakes together.

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
        """All collected mistakes, without duplicates."""
        return tuple(self._found.values())

    def refuse(self) -> None:
        """Raise ``InputErrors`` if any mistakes were collected."""
        if self._found:
            raise InputErrors(list(self._found.values()))


class ArtifactError(HostwrightError):
    """A file of the stack is missing, has the wrong checksum, or cannot be fetched."""

    lead = "mirror"


class LabError(HostwrightError):
    """The lab (a test environment with simulated hosts) cannot be started, or its host behaves unexpectedly."""


class HostError(HostwrightError):
    """An error on one host, or on the connection to it."""

    examination: Examination | None = None  #: known problems that were found on the host after the error
    acceptance: tuple[Acceptance, ...] = ()

    def __init__(self, host: str, message: str):
        super().__init__(f"{host}: {message}")
        self.host = host
        self.sentence = message

    def retell(self, message: str) -> None:
        """Replace the error's message, for example when the cause is found later."""
        self.sentence, self.args = message, (f"{self.host}: {message}",)


class Unreachable(HostError):
    """No SSH session to the host could be opened: name resolution, connection, host key, login or timeout.

    ``passing`` means that a retry may succeed, because the connection was refused, reset or lost.
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
    """The host sent output that is incomplete, too large, or not from Hostwright's program on the host."""


class NotAnswered(HostwrightError, KeyError):
    """A probe (a script that reads a host's state) hung and was killed, so its result is unknown."""

    def __init__(self, script: str, seconds: int):
        line = next((line for line in script.splitlines() if line and "=" not in line.split(" ")[0]), script)
        self.sentence = f"{NOT_IN_TIME} within {seconds} s: {line[:_SCRIPT_CHARACTERS]}"
        super().__init__(self.sentence)

    def __str__(self) -> str:
        return self.sentence


class Refused(HostError):
    """Hostwright refuses to change the host: a rule forbids it, or a prerequisite is missing."""


class Locked(Refused):
    """Another run is changing the host, or an operator has locked it. The host is unchanged.

    The message names the owner of the lock. The error does not count as a failure.
    """

    exit_status = DIFFERS


class Unanswered(Refused):
    """The planned changes would delete data permanently, and no operator has confirmed the deletion."""


class Stopped(HostError):
    """The operator stopped the run (Ctrl-C). The current step on the host was completed; no later step was started."""


class ExecutorLost(Stopped):
    """The process that worked on the host has failed, and no other process can replace it. ``because`` is the cause."""

    def __init__(self, host: str, because: str, then: str):
        super().__init__(host, f"{because}; {then}")
        self.because = because


@dataclass(frozen=True, slots=True)
class Finding:
    """A known problem that was recognised on a host. ``evidence`` is the output of the host that shows the problem.

    ``grave`` means that work on the host fails or will fail; otherwise the problem is a warning. ``provision`` means
    that ``invoke provision`` fixes the problem. ``link`` is the command that explains the problem.
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
    """The last log lines of the systemd ``unit``: the unit ``named`` in an error, or a failed dependency of that unit.

    ``last`` is the last output of the program that the unit runs.
    """

    named: str
    unit: str
    lines: tuple[str, ...]
    last: str


@dataclass(frozen=True, slots=True)
class Examination:
    """The result of checking a host for known problems after a failure.

    ``sentence`` lists the checks that were made, and the checks that were not possible. ``journals`` are the logs of
    the systemd units that the failure names.
    """

    findings: tuple[Finding, ...]
    sentence: str
    journals: tuple[UnitJournal, ...] = ()
    not_checked: tuple[str, ...] = ()  #: names of rules that could not be checked


@dataclass(frozen=True, slots=True)
class FailedStep:
    """A failed step of a role, with all details that an operator needs without a login to the host."""

    role: str
    what: str  #: change for which the step was run, such as ``file /etc/motd``
    command: str  #: shell script that the step ran
    status: int  #: exit status of the script in ``command``
    tail: tuple[str, ...] = field(default=())  #: last lines of the script's output
    known: Finding | None = None  #: known problem that the last lines of output show
    units: tuple[str, ...] = ()


class StepFailed(HostError):
    """A step of a role exited with a nonzero status."""

    def __init__(self, host: str, message: str, step: FailedStep):
        super().__init__(host, message)
        self.step = step


class ScriptFailed(HostError):
    """A script that Hostwright ran as root, but not for a role, exited with a nonzero status.

    ``lines`` are the last lines of the script's standard error.
    """

    def __init__(self, host: str, failure: str, status: int, lines: tuple[str, ...] = ()):
        super().__init__(host, f"{failure}: {lines[-1] if lines else f'exit status {status} (no error output)'}")
        self.status = status
        self.lines = lines


class SeveralFailed(HostError):
    """Several independent errors on one host, such as those of parallel roles."""

    def __init__(self, host: str, errors: list[HostwrightError]):
        self.errors = tuple(errors)
        super().__init__(host, self.joined())

    def joined(self) -> str:
        """Return the messages of all errors as one message."""
        sentences = [error.sentence if isinstance(error, HostError) else str(error) for error in self.errors]
        return f"{len(sentences)} failures: " + " · ".join(sentences)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Result of one acceptance check of a host: name of the check (``network.dense``), outcome, and reason."""

    name: str
    outcome: str
    sentence: str = ""


class NotAccepted(HostError):
    """The host is in the desired state, but did not pass an acceptance check.

    ``exit_status`` is 3 if a check failed, and 1 if a check could not be run.
    """

    def __init__(self, host: str, message: str, acceptance: tuple[Acceptance, ...] = (), *, exit_status: int = FAILED):
        super().__init__(host, f"the host is as desired, but {message}")
        self.acceptance = acceptance
        self.exit_status = exit_status


class NotConverged(HostError):
    """Every step succeeded, but the host still differs from its desired state."""
