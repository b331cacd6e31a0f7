"""Assignments of path variables in the login user's shell startup files, from bash's trace of these files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hostwright.resources import Probe
from hostwright.roles import Pattern, sh_file

MOST_S = 5  #: time limit in seconds for all shell startup files of a login shell (our choice)
#: shell function ``has`` that prints the stack's libraries in a directory
HAS = (Path(__file__).parent / "has.sh").read_text(encoding="utf-8")
_TRACE = (Path(__file__).parent / "trace.sh").read_text(encoding="utf-8")

#: probe that prints path assignments of a login shell, and libraries on the final paths
LOGIN = Probe(HAS + sh_file(__file__, "login.sh", trace=_TRACE, most_s=MOST_S), cap_bytes=128 * 1024)

_SET = Pattern(r"\++hostwright (/[^:]+:[0-9]+): (?:export |declare -x )?(PATH|LD_LIBRARY_PATH)='?([^']*)'?")


@dataclass(frozen=True, slots=True)
class PathSetting:
    """Assignment of a path variable in a shell startup file."""

    place: str  #: file and line number of the assignment, as ``FILE:LINE``
    name: str
    value: str

    @property
    def directories(self) -> tuple[str, ...]:
        return tuple(part.rstrip("/") for part in self.value.split(":") if part)

    def __str__(self) -> str:
        return f"{self.place}: {self.name}={self.value}"


def settings(answer: str, name: str) -> tuple[PathSetting, ...]:
    """Parse bash's trace of shell startup files; return the assignments of ``name`` in order of execution.

    >>> str(settings("+hostwright /etc/profile.d/zz.sh:1: export PATH=/bin", "PATH")[-1])
    '/etc/profile.d/zz.sh:1: PATH=/bin'
    """
    rows = (match for line in answer.splitlines() if (match := _SET.fullmatch(line)))
    return tuple(PathSetting(row[1], row[2], row[3]) for row in rows if row[2] == name)


def last(found: tuple[PathSetting, ...], that: Callable[[PathSetting], bool]) -> PathSetting | None:
    """Return the last assignment for which ``that`` returns true; ``None`` without one."""
    return next((each for each in reversed(found) if that(each)), None)


def setter(answer: str, name: str, directory: str, tools: str = "") -> PathSetting | None:
    """Return the assignment of the variable ``name`` that puts ``directory`` before the toolkit's directory ``tools``.

    If the final ``PATH`` lacks ``tools``, return the last assignment whose value lacks ``tools``.
    """
    found = settings(answer, name)
    if name == "PATH" and found and tools not in found[-1].directories:
        return last(found, lambda each: tools not in each.directories)
    return last(found, lambda each: directory in each.directories)


def libraries(answer: str) -> tuple[str, ...]:
    """Return the library paths in the lines of ``answer`` that begin with ``has``."""
    return tuple(line[4:] for line in answer.splitlines() if line.startswith("has /"))
