"""Which file sets a variable of login shells: bash itself tells, as it reads the start files of the login user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hostwright.resources import Probe
from hostwright.roles import Pattern, sh_file

MOST_S = 5  #: our choice, for all start files; those of a clean Debian take 10 ms
#: the function ``has``: the stack's libraries in a directory
HAS = (Path(__file__).parent / "has.sh").read_text(encoding="utf-8")
_TRACE = (Path(__file__).parent / "trace.sh").read_text(encoding="utf-8")

#: ``+hostwright FILE:LINE: NAME=VALUE`` for each time that they set a path, ``has PATH`` for libraries on the last one
LOGIN = Probe(HAS + sh_file(__file__, "login.sh", trace=_TRACE, most_s=MOST_S), cap_bytes=128 * 1024)

_SET = Pattern(r"\++hostwright (/[^:]+:[0-9]+): (?:export |declare -x )?(PATH|LD_LIBRARY_PATH)='?([^']*)'?")


@dataclass(frozen=True, slots=True)
class PathSetting:
    """A start file sets a path."""

    place: str  #: file and line
    name: str
    value: str

    @property
    def directories(self) -> tuple[str, ...]:
        """The directories of the path, in order."""
        return tuple(part.rstrip("/") for part in self.value.split(":") if part)

    def __str__(self) -> str:
        return f"{self.place}: {self.name}={self.value}"


def settings(answer: str, name: str) -> tuple[PathSetting, ...]:
    """Each time that the start files set this variable, in order.

    >>> str(settings("+hostwright /etc/profile.d/zz.sh:1: export PATH=/bin", "PATH")[-1])
    '/etc/profile.d/zz.sh:1: PATH=/bin'
    """
    rows = (match for line in answer.splitlines() if (match := _SET.fullmatch(line)))
    return tuple(PathSetting(row[1], row[2], row[3]) for row in rows if row[2] == name)


def last(found: tuple[PathSetting, ...], that: Callable[[PathSetting], bool]) -> PathSetting | None:
    """The last of them of which this is true."""
    return next((each for each in reversed(found) if that(each)), None)


def setter(answer: str, name: str, directory: str, tools: str = "") -> PathSetting | None:
    """Who puts ``directory`` before the toolkit's ``tools`` on this path: the last that left those out, if they are not
    on it in the end, else the last that names the directory.
    """
    found = settings(answer, name)
    if name == "PATH" and found and tools not in found[-1].directories:
        return last(found, lambda each: tools not in each.directories)
    return last(found, lambda each: directory in each.directories)


def libraries(answer: str) -> tuple[str, ...]:
    """The libraries that the answer to a probe with ``has`` names."""
    return tuple(line[4:] for line in answer.splitlines() if line.startswith("has /"))
