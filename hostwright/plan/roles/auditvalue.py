"""The values that audits compare, as defined by roles: the desired value, and where to read the actual value. Pure
data.

    def audit_values(v: Chrony, ctx: RoleContext) -> Iterator[AuditValue]:
        yield AuditValue("package", PackageVersion("chrony"), "4.0-8")
        yield AuditValue("sources", TOOLKITS.line("sources"), among=DISTRIBUTION)

One program reads the values of all roles of a host, and starts dpkg, ldconfig and systemctl once each. A ``ReadPlace``
describes where to read one value. Its ``line`` is the name of the value in the program's output. Equal ``ReadPlace``
objects are read once.
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
        raise ValueError(f"{text!r} is not a valid {what}")


def _words(text: str) -> str:
    return " ".join(re.findall(r"[A-Za-z0-9._+-]+", text))


@dataclass(frozen=True, slots=True)
class PackageVersion:
    """The version of an installed Debian package.

    If ``name`` matches one of the shell patterns ``families``, the versions of all packages of that family are read, so
    that stored answers also fit a later stack with another package of the family.
    """

    name: str
    families: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        for name in (self.name, *self.families):
            _checked(_PACKAGE, name, "name of a Debian package")

    @property
    def line(self) -> str:
        """The name of the value in the output of the audit program."""
        return f"package {self.name}"


@dataclass(frozen=True, slots=True)
class PackageHold(PackageVersion):
    """Whether apt-mark holds an installed Debian package at its version: ``held`` or ``not held``."""

    @property
    def line(self) -> str:
        """The name of the value in the output of the audit program."""
        return f"mark {self.name}"


@dataclass(frozen=True, slots=True)
class PackageOf:
    """The version of the one installed package among ``names`` (names or shell patterns).

    With ``named``, the package's name precedes the version.
    """

    names: tuple[str, ...]
    named: bool = False

    def __post_init__(self) -> None:
        for name in self.names:
            _checked(_PACKAGE, name, "name of a Debian package")

    @property
    def line(self) -> str:
        """The name of the value in the output of the audit program."""
        return f"any of {_words(' '.join(self.names))}"


@dataclass(frozen=True, slots=True)
class LibraryVersion:
    """The version of a library: the text after ``.so.`` in its file's name, found through the loader's cache."""

    name: str  #: soname of the library, such as ``libm.so.6``

    def __post_init__(self) -> None:
        _checked(_LIBRARY, self.name, "name of a library")

    @property
    def line(self) -> str:
        """The name of the value in the output of the audit program."""
        return f"library {self.name}"


@dataclass(frozen=True, slots=True)
class LibraryPath(LibraryVersion):
    """The path of a library in the loader's cache, with links in its directory resolved."""

    @property
    def line(self) -> str:
        """The name of the value in the output of the audit program."""
        return f"loader {self.name}"


@dataclass(frozen=True, slots=True)
class UnitProperty:
    """A property of a systemd unit, such as its state: ``active``, ``inactive``, ``failed``."""

    unit: str  #: name of the systemd unit with suffix, such as ``chrony.service``
    name: str = "ActiveState"

    def __post_init__(self) -> None:
        _checked(_UNIT, self.unit, "name of a systemd unit")
        _checked(re.compile("[A-Za-z]+"), self.name, "property of a systemd unit")

    @property
    def line(self) -> str:
        """The name of the value in the output of the audit program."""
        return f"unit {_words(self.unit)} {self.name}"


@dataclass(frozen=True, slots=True)
class FileLine:
    """The first line of a small file, such as a file in ``/sys``; empty if only root can read it."""

    path: str

    @property
    def line(self) -> str:
        """The name of the value in the output of the audit program."""
        return f"file {_words(self.path)}"


@dataclass(frozen=True, slots=True)
class FileThere:
    """Whether ``path`` exists: ``yes`` or ``no``. With ``executable``, the path must also be an executable file."""

    path: str
    executable: bool = False

    @property
    def line(self) -> str:
        """The name of the value in the output of the audit program."""
        return f"{'program' if self.executable else 'path'} {_words(self.path)}"


@dataclass(frozen=True, slots=True)
class VenvPython:
    """The Python version of a virtual environment, such as ``3.9``."""

    venv: str  #: path of the virtual environment, or of a link to the environment

    @property
    def line(self) -> str:
        """The name of the value in the output of the audit program."""
        return f"python of {_words(self.venv)}"


@dataclass(frozen=True, slots=True)
class VenvVersion:
    """The version of a Python package in a virtual environment; several versions if pip left old metadata."""

    venv: str  #: path of the virtual environment, or of a link to the environment
    name: str  #: package name, as in the name of the ``dist-info`` directory

    def __post_init__(self) -> None:
        _checked(re.compile(r"[A-Za-z0-9._]+"), self.name, "name of a dist-info directory")

    @property
    def line(self) -> str:
        """The name of the value in the output of the audit program."""
        return f"dist {self.name} of {_words(self.venv)}"


@dataclass(frozen=True, slots=True)
class SnippetLine:
    """The value with the name ``name`` that ``snippet`` prints."""

    snippet: Snippet
    name: str

    @property
    def line(self) -> str:
        """The name of the value in the output of the audit program."""
        return f"{self.snippet.name} {self.name}"


@dataclass(frozen=True, slots=True)
class Snippet:
    """A role's shell code that prints values with ``say NAME VALUE``, run once in a subshell.

    The code may use the functions of ``hostwright/audit/readings/prelude.sh``, and ``$kernel``, the running kernel's
    release. ``name`` is the prefix of all names that the code prints. With ``root``, the code runs with sudo.
    """

    name: str
    text: str
    root: bool = False

    @classmethod
    def beside(cls, module: str, file: str, name: str, *, root: bool = False) -> Snippet:
        """Read the snippet's code from ``file`` beside the Python module with the path ``module``."""
        return cls(name, sh_file(module, file), root)

    def line(self, name: str) -> SnippetLine:
        """Return where to read the value that the snippet prints as ``name``."""
        return SnippetLine(self, name)


ReadPlace = (
    PackageVersion | PackageHold | PackageOf | LibraryVersion | LibraryPath | UnitProperty | FileLine | FileThere
    | VenvPython | VenvVersion | SnippetLine
)  # fmt: skip


def needs_root(place: ReadPlace) -> bool:
    """Whether only root can read the value at ``place``."""
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
    """A value of a role that audits compare.

    ``where`` is the place of the host's value, and ``want`` is the stack's value. If ``want`` is ``None``, hosts with
    the same text at ``among`` are compared with each other. With ``given``, a pair of place and text, the value applies
    only to hosts with this text at that place. The first audit value of a name that applies is used. ``derive``
    converts the text that was read to the value to compare, or to ``None`` if that is impossible.
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
        """Whether only root can read the value."""
        return needs_root(self.where)

    @property
    def places(self) -> tuple[ReadPlace, ...]:
        """Every ``ReadPlace`` that must be read to compare the value."""
        return (self.where, *([self.among] if self.among else []), *([self.given[0]] if self.given else []))
