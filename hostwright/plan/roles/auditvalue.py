"""The values that audits compare, as roles give them: what is wanted of a host, and where that is read. Pure data.

    def audit_values(v: Chrony, ctx: RoleContext) -> Iterator[AuditValue]:
        yield AuditValue("package", PackageVersion("chrony"), "4.0-8")
        yield AuditValue("sources", TOOLKITS.line("sources"), among=DISTRIBUTION)

A place says where a value is read, not how: the engine reads the places of all roles of a host in one program, in which
dpkg, ldconfig and systemctl are started once. ``line`` is the name under which that program prints a place. Equal
places are read once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from hostwright.common.quoting import sh_file

_PACKAGE = re.compile(r"[a-z0-9][a-z0-9.+*\[\]-]*")
_LIBRARY = re.compile(r"[A-Za-z0-9_.+-]+[.]so[.][0-9.]+")
_UNIT = re.compile(r"[A-Za-z0-9_.@:-]+[.][a-z]+")


def _checked(pattern: re.Pattern[str], text: str, what: str) -> None:
    if not pattern.fullmatch(text):
        raise ValueError(f"{text!r} is no {what}")


def _words(text: str) -> str:
    """A path or a name as the name of a line: without what such a name cannot hold."""
    return " ".join(re.findall(r"[A-Za-z0-9._+-]+", text))


@dataclass(frozen=True, slots=True)
class PackageVersion:
    """The version of an installed Debian package.

    ``families`` are shell patterns of names that are asked for in its place where they cover it, whatever the stack: so
    that answers which were stored can be compared with a stack of later, which has another package.
    """

    name: str
    families: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        for name in (self.name, *self.families):
            _checked(_PACKAGE, name, "name of a Debian package")

    @property
    def line(self) -> str:
        """The name of its line."""
        return f"package {self.name}"


@dataclass(frozen=True, slots=True)
class PackageHold(PackageVersion):
    """Whether apt keeps an installed package at its version: ``held`` or ``not held``."""

    @property
    def line(self) -> str:
        """The name of its line."""
        return f"mark {self.name}"


@dataclass(frozen=True, slots=True)
class PackageOf:
    """The version of whichever of these packages is installed, after its name where it is ``named``.

    ``names`` may be shell patterns.
    """

    names: tuple[str, ...]
    named: bool = False

    def __post_init__(self) -> None:
        for name in self.names:
            _checked(_PACKAGE, name, "name of a Debian package")

    @property
    def line(self) -> str:
        """The name of its line."""
        return f"any of {_words(' '.join(self.names))}"


@dataclass(frozen=True, slots=True)
class LibraryVersion:
    """The version of a library: what follows ``.so.`` in the name of the file that the loader's cache leads to."""

    name: str  #: as programs ask for it: ``libm.so.6``

    def __post_init__(self) -> None:
        _checked(_LIBRARY, self.name, "name of a library")

    @property
    def line(self) -> str:
        """The name of its line."""
        return f"library {self.name}"


@dataclass(frozen=True, slots=True)
class LibraryPath(LibraryVersion):
    """The path under which the loader's cache has a library, with the links of its directory followed."""

    @property
    def line(self) -> str:
        """The name of its line."""
        return f"loader {self.name}"


@dataclass(frozen=True, slots=True)
class UnitProperty:
    """A property of a systemd unit, such as its state: ``active``, ``inactive``, ``failed``."""

    unit: str  #: with its ending: ``chrony.service``
    name: str = "ActiveState"

    def __post_init__(self) -> None:
        _checked(_UNIT, self.unit, "name of a systemd unit")
        _checked(re.compile("[A-Za-z]+"), self.name, "property of a systemd unit")

    @property
    def line(self) -> str:
        """The name of its line."""
        return f"unit {_words(self.unit)} {self.name}"


@dataclass(frozen=True, slots=True)
class FileLine:
    """The first line of a small file, of ``/sys`` for instance; nothing where it cannot be read without root."""

    path: str

    @property
    def line(self) -> str:
        """The name of its line."""
        return f"file {_words(self.path)}"


@dataclass(frozen=True, slots=True)
class FileThere:
    """Whether a path is there, and where ``executable`` whether it can be run: ``yes`` or ``no``."""

    path: str
    executable: bool = False

    @property
    def line(self) -> str:
        """The name of its line."""
        return f"{'program' if self.executable else 'path'} {_words(self.path)}"


@dataclass(frozen=True, slots=True)
class VenvPython:
    """The version of Python that a virtual environment is of: ``3.9``."""

    venv: str  #: the path of the environment, or of a link to it

    @property
    def line(self) -> str:
        """The name of its line."""
        return f"python of {_words(self.venv)}"


@dataclass(frozen=True, slots=True)
class VenvVersion:
    """The version of a Python package in a virtual environment; several where pip left more than one behind."""

    venv: str  #: the path of the environment, or of a link to it
    name: str  #: as its ``dist-info`` directory begins

    def __post_init__(self) -> None:
        _checked(re.compile(r"[A-Za-z0-9._]+"), self.name, "name of a dist-info directory")

    @property
    def line(self) -> str:
        """The name of its line."""
        return f"dist {self.name} of {_words(self.venv)}"


@dataclass(frozen=True, slots=True)
class SnippetLine:
    """What a snippet says under a name."""

    snippet: Snippet
    name: str

    @property
    def line(self) -> str:
        """The name of its line."""
        return f"{self.snippet.name} {self.name}"


@dataclass(frozen=True, slots=True)
class Snippet:
    """A role's own piece of shell, run once for all its lines, in a subshell; it prints each with ``say NAME VALUE``.

    It may use the functions of ``hostwright/audit/readings/prelude.sh`` (``line_of FILE`` sets ``$line``, ``bounded``
    gives a command ten seconds) and ``$kernel``, the release of the running kernel. ``name`` stands before the names of
    its lines; ``root`` has it run under sudo.
    """

    name: str
    text: str
    root: bool = False

    @classmethod
    def beside(cls, module: str, file: str, name: str, *, root: bool = False) -> Snippet:
        """The snippet in a file beside a module, which gives its ``__file__``."""
        return cls(name, sh_file(module, file), root)

    def line(self, name: str) -> SnippetLine:
        """The place of one of its lines."""
        return SnippetLine(self, name)


ReadPlace = (
    PackageVersion | PackageHold | PackageOf | LibraryVersion | LibraryPath | UnitProperty | FileLine | FileThere
    | VenvPython | VenvVersion | SnippetLine
)  # fmt: skip


def needs_root(place: ReadPlace) -> bool:
    """Whether only root can read it."""
    return isinstance(place, SnippetLine) and place.snippet.root


KERNEL = FileLine("/proc/sys/kernel/osrelease")
PRODUCT = FileLine("/sys/class/dmi/id/product_name")
DISTRIBUTION = Snippet(
    "host",
    r"""
value=
if [ -r /etc/os-release ]; then
  while IFS= read -r line; do
    case $line in PRETTY_NAME=*) value=${line#*=}; value=${value#[\"\']}; value=${value%[\"\']}; break ;; esac
  done </etc/os-release
fi
say distribution "$value"
""",
).line("distribution")


@dataclass(frozen=True, slots=True)
class AuditValue:
    """One value of a layer, which the engine names after the role that gave it.

    ``want`` is the stack's value, ``None`` where no stack pins it: then hosts with the same text at ``among`` are
    compared with each other. ``given`` is a place and the text that must be there for the value to be meant at all:
    which numpy is right depends on the environment's Python. Of values with one name the first that is meant counts.
    ``derive`` makes of what was read what is compared, ``None`` where that cannot be told; such values come last.
    """

    name: str
    where: ReadPlace
    want: str | None = None
    among: ReadPlace | None = None
    given: tuple[ReadPlace, str] | None = None
    derive: Callable[[str], str | None] | None = None
    layer: str = ""

    @property
    def root(self) -> bool:
        """Whether only root can read it."""
        return needs_root(self.where)

    @property
    def places(self) -> tuple[ReadPlace, ...]:
        """Every place that must be read for it."""
        return (self.where, *([self.among] if self.among else []), *([self.given[0]] if self.given else []))
