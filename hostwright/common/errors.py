"""The one tree of errors.

Each error carries first the sentence that the operator should read: what happened, where, and what to do now.
``exit_status`` is that of the command: 1 something failed, 2 bad input.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType
from typing import Self


class HostwrightError(Exception):
    """Base of every error that Hostwright raises on purpose; ``str(error)`` is the operator's sentence."""

    exit_status = 1


class InputError(HostwrightError):
    """Something that a user wrote is wrong: inventory, stack, option. Nothing was touched.

    ``where`` is ``file:line`` or the option's name; it is printed before the sentence.
    """

    exit_status = 2

    def __init__(self, message: str, where: str | None = None):
        super().__init__(f"{where}: {message}" if where else message)
        self.where = where


class InputErrors(InputError):
    """All mistakes of the users' files at once, one a line."""

    def __init__(self, errors: list[InputError]):
        super().__init__("\n".join(str(error) for error in errors))
        self.errors = tuple(errors)


class Mistakes:
    """The mistakes of several readers, raised together: call each within ``with mistakes:``, then ``refuse()``."""

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

    def refuse(self) -> None:
        """Raise ``InputErrors`` with all mistakes, each once; nothing where there are none."""
        if self._found:
            raise InputErrors(list(self._found.values()))


class ArtifactError(HostwrightError):
    """A file of the stack is missing, has the wrong checksum, or cannot be fetched."""


class LabError(HostwrightError):
    """The lab cannot be brought up, or a lab host does not do what it should."""


class HostError(HostwrightError):
    """Something failed on, or on the way to, one host."""

    def __init__(self, host: str, message: str):
        super().__init__(f"{host}: {message}")
        self.host = host
        self.sentence = message


class Unreachable(HostError):
    """No SSH session could be had: name resolution, connection, host key, authentication, timeout.

    ``passing`` is true for what may succeed in a moment (a connection refused, reset or lost), and false for what stays
    until somebody changes it (a host key, a login).
    """

    def __init__(self, host: str, message: str, *, passing: bool = False):
        super().__init__(host, message)
        self.passing = passing


class BecomeError(HostError):
    """The login user cannot become root: no sudo, a wrong or missing password, not in sudoers."""


class ProtocolError(HostError):
    """The host's answer is not what the program it was given prints: truncated, too large, or not ours."""


class Refused(HostError):
    """The host must not be touched: a rule or a preflight says no."""


class Locked(Refused):
    """Somebody else works on the host, or has locked it; the sentence says who, since when and until when."""


class Stopped(HostError):
    """The operator stopped the run: what ran on the host has ended, and the rest was not started."""


@dataclass(frozen=True, slots=True)
class FailedStep:
    """The step that failed, with what is needed to understand it without logging in."""

    role: str
    what: str
    command: str
    status: int
    tail: tuple[str, ...] = field(default=())


class StepFailed(HostError):
    """One step of a role ended with a status other than zero."""

    def __init__(self, host: str, message: str, step: FailedStep):
        super().__init__(host, message)
        self.step = step


class ScriptFailed(HostError):
    """A root program of Hostwright's own, such as one that writes a record, ended with a status other than zero.

    ``lines`` are the last ones of its standard error.
    """

    def __init__(self, host: str, failure: str, status: int, lines: tuple[str, ...] = ()):
        super().__init__(host, f"{failure}: {lines[-1] if lines else f'exit status {status} (no error output)'}")
        self.status = status
        self.lines = lines


class SeveralFailed(HostError):
    """More than one role of a host failed: roles that do not need each other run side by side."""

    def __init__(self, host: str, errors: list[HostwrightError]):
        sentences = [error.sentence if isinstance(error, HostError) else str(error) for error in errors]
        super().__init__(host, f"{len(errors)} roles failed: " + " · ".join(sentences))
        self.errors = tuple(errors)


class NotConverged(HostError):
    """Every step succeeded, and yet fresh facts still differ from what is wanted."""
