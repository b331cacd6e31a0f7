"""dpkg's database as a host shows it, and how apt and dpkg are called: what all resources of packages share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import repeat
from operator import attrgetter

from hostwright.common.quoting import sh, sh_file
from hostwright.plan.host import release
from hostwright.plan.model import Facts, Probe
from hostwright.plan.roles.software import Software
from hostwright.stack.stack import Artifact

DPKG_LOCK = "dpkg"

#: Runs in all of a step that asks a mirror, as long as what it fails for is transient. With the backoff between them
#: (``hostwright.apply.jobs.transient``) they span over a minute: a mirror that is being synchronised, a resolver that
#: restarts.
MIRROR_TRIES = 5

#: name with architecture, version, state ("ii " installed, "hi " installed and held, "rc " removed, "iF "
#: half-configured …), architecture, source package
DPKG = Probe(
    "dpkg-query -W -f='${Package}:${Architecture}\\t${Version}\\t${db:Status-Abbrev}\\t${Architecture}\\t"
    "${source:Package}\\n'",
    cap_bytes=1024 * 1024,
)

#: names of the packages that apt has marked as installed for others' sake: autoremove takes them with those
AUTOMATIC = Probe(
    "sed -n -e '/^Package: /h' -e '/^Auto-Installed: 1/{g;s/^Package: //p}' /var/lib/apt/extended_states",
    cap_bytes=256 * 1024,
)

#: 600 s is what unattended-upgrades may take on a slow disk (Azure/aks-engine#1538, #3068). A site may have told apt to
#: remove what it takes for unneeded with each command (mvo5/unattended-upgrades#276): ours do what the plan shows.
APT_OPTIONS = (
    "-y -q -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 -o APT::Get::AutomaticRemove=false "
    "-o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold"
)
APT_GET = "DEBIAN_FRONTEND=noninteractive apt-get " + APT_OPTIONS
#: What is installed is all that apt knows: without its lists it answers in 20 ms instead of a second, and the same
#: before and after they are fetched.
NO_LISTS = (
    "-o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=/nonexistent/ "
    "-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache="
)

#: packages whose files may not be on the disk yet, below the id of the boot in which they were unpacked
UNSYNCED = "/var/lib/hostwright/origin/unsynced"
#: The shell functions ``stopped`` and ``synced``, about these packages.
ABOUT_UNSYNCED = sh_file(__file__, "sh/unsynced.sh", unsynced=UNSYNCED)

#: A program for ``sh -c`` that runs its arguments: again every two seconds, for ten minutes, as long as a lock is what
#: they fail for.
PATIENCE = (
    'n=0; until output=$("$@" 2>&1); do case $output in *"locked by another process"*|*"Could not get lock"*) ;; '
    '*) n=300 ;; esac; n=$((n + 1)); [ "$n" -le 300 ] || { printf "%s\\n" "$output"; exit 1; }; sleep 2; done; '
    'printf "%s\\n" "$output"'
)
#: Before a command that does not wait for a lock by itself: apt-mark, dpkg, apt-get for its lists.
PATIENTLY = sh("sh -c %s patiently", PATIENCE)

#: Before the names of packages that apt must not move. apt-mark would read all of apt's lists for it.
HOLD = PATIENTLY + sh(" sh -c %s hold ", 'printf "%s hold\\n" "$@" | dpkg --set-selections')

#: The shell function ``along``: what apt removes beside packages.
ALONG = sh_file(__file__, "sh/along.sh", no_lists=NO_LISTS)
#: The shell functions that fetch apt's lists: ``fetch_lists``, ``notes``, ``not_fetched``.
LISTS = sh_file(__file__, "sh/lists.sh", apt_options=APT_OPTIONS, patiently=PATIENCE)
#: The shell function ``configured``.
UNSTARTED = sh_file(__file__, "sh/mending/unstarted.sh", patiently=PATIENCE)


def mend_script(removable: Iterable[str] = (), leaving: Iterable[str] = (), patterns: tuple[str, ...] = ()) -> str:
    """Commands after which nothing is half-installed, half-configured or waiting for a trigger.

    They remove nothing but ``removable``, and first of all ``leaving``, which match ``patterns``; where apt wants to
    remove more, they fail and name it.
    """
    gone = " ".join(leaving)
    values = {"patiently": PATIENCE, "apt_options": APT_OPTIONS}
    values |= {"removable": " ".join(removable), "leaving": gone, "barred": _barred(patterns), "unsynced": UNSYNCED}
    looked = _looked(patterns) if gone else ABOUT_UNSYNCED
    return looked + LISTS + UNSTARTED + sh_file(__file__, "sh/mending/mend.sh", **values).rstrip("\n")


def mend_cut_script(removable: Iterable[str] = ()) -> str:
    """The same where a dpkg that was cut left its journal, though its database may read as if it were in order."""
    return 'if [ -n "$(ls /var/lib/dpkg/updates 2>/dev/null)" ]; then\n' + mend_script(removable) + "\nfi"


@lru_cache(maxsize=8)
def mending(leaving: tuple[str, ...] = (), services: tuple[str, ...] = ()) -> Probe:
    """What mending would do, a line each (``sh/mending/mend_probe.sh``); nothing where dpkg is in order."""
    return Probe(_looked(leaving, services) + "looked", root=True, shared=True)


def _looked(leaving: tuple[str, ...], services: tuple[str, ...] = ()) -> str:
    values = {"apt_options": APT_OPTIONS, "no_lists": NO_LISTS, "leaving": " ".join(leaving)}
    values |= {"services": " ".join(services), "sound": release.PATH, "unsynced": UNSYNCED}
    return sh_file(__file__, "sh/mending/mend_probe.sh", **values, barred=_barred(leaving)) + ABOUT_UNSYNCED


def _barred(leaving: Iterable[str]) -> str:
    """Preferences of apt's with which packages of these patterns do not come; of one, the first pattern counts."""
    pins = ((pattern.removeprefix("!"), 500 if pattern.startswith("!") else -1) for pattern in leaving)
    return "\n\n".join(f"Package: {pattern}\nPin: version *\nPin-Priority: {priority}" for pattern, priority in pins)


MOST_ROWS = 8192  #: our choice, of rows that are kept for further hosts: a host has some hundred


@dataclass(frozen=True, slots=True)
class Installed:
    """One row of dpkg's database."""

    name: str
    version: str
    state: str
    architecture: str = field(default="", compare=False)  #: empty in a record of packages from before
    source: str = field(default="", compare=False)  #: likewise

    @property
    def base(self) -> str:
        """Its name without an architecture."""
        return self.name.partition(":")[0]

    @property
    def present(self) -> bool:
        """Whether the package is unpacked and configured."""
        return self.state[1:2] == "i"

    @property
    def held(self) -> bool:
        """Whether apt is told to leave it alone."""
        return self.state[:1] == "h"

    @property
    def broken(self) -> bool:
        """Whether dpkg was interrupted while working on it."""
        return self.state[1:2] in {"U", "F", "H", "W", "t"} or self.state[2:3] == "R"

    @property
    def configuration_only(self) -> bool:
        """Whether it was removed and has left its configuration files."""
        return self.state[1:2] == "c"


def dpkg_table(facts: Facts) -> Mapping[str, Installed]:
    """dpkg's database by package name. Who looks for names reads these rows alone (``Facts.table``)."""
    return facts.table(DPKG, parse_dpkg)


def dpkg_rows(facts: Facts, wanted: Callable[[Installed], bool]) -> tuple[Installed, ...]:
    """The rows of dpkg's database that are wanted, by name; of the others nothing is read. ``wanted`` is pure, and is
    recognised when it comes again: a function of a module, or a value with a hash."""
    return facts.table(DPKG, _by_choice)[wanted]


@lru_cache(maxsize=64)
def parse_automatic(text: str) -> Mapping[str, str]:
    """The lines of ``AUTOMATIC`` by name."""
    return {name: name for name in text.split()}


def is_broken(row: Installed) -> bool:
    """For ``dpkg_rows``: dpkg was interrupted while working on it."""
    return row.broken


class _Chosen(dict[Callable[[Installed], bool], tuple[Installed, ...]]):
    """The rows of one database by what is wanted of them, made when they are asked for."""

    def __init__(self, rows: Iterable[Installed]):
        super().__init__()
        self._rows = tuple(rows)

    def __missing__(self, wanted: Callable[[Installed], bool]) -> tuple[Installed, ...]:
        decision = _decision(wanted)
        found = self[wanted] = tuple(sorted(filter(decision.is_wanted, self._rows), key=attrgetter("name")))
        return found


class _Decision:
    """What is decided of each row, once: hosts have most of their rows in common, and then they are the same object."""

    def __init__(self, wanted: Callable[[Installed], bool]):
        self._wanted = wanted
        self._known: dict[int, tuple[bool, Installed]] = {}  # with the row: its number is its own as long as it is held

    def is_wanted(self, row: Installed) -> bool:
        known = self._known.get(id(row))
        if known is None:
            if len(self._known) >= MOST_ROWS:
                self._known = {}
            known = self._known[id(row)] = (self._wanted(row), row)
        return known[0]


@lru_cache(maxsize=32)
def _decision(wanted: Callable[[Installed], bool]) -> _Decision:
    return _Decision(wanted)


@lru_cache(maxsize=64)
def _by_choice(text: str) -> Mapping[Callable[[Installed], bool], tuple[Installed, ...]]:
    return _Chosen(parse_dpkg(text).values())


@lru_cache(maxsize=64)
def parse_dpkg(text: str) -> Mapping[str, Installed]:
    """Rows of ``DPKG`` by package name; lines that are none are passed over.

    One of another architecture than the host's own has that in its name (``libc6:i386``): it is another package.
    """
    lines = text.splitlines()
    kinds = dict(filter(None, map(_kind, lines)))
    own = kinds.get("dpkg", next(iter(kinds.values())) if len(set(kinds.values())) == 1 else "")
    return {row.name: row for row in map(_row, lines, repeat(own)) if row is not None}


@lru_cache(maxsize=MOST_ROWS)
def _kind(line: str) -> tuple[str, str] | None:
    """The name and the architecture of a row that tells one."""
    row = line.split("\t")
    return (row[0].partition(":")[0], row[3]) if len(row) == 5 and row[3] not in {"", "all"} else None


@lru_cache(maxsize=MOST_ROWS)
def _row(line: str, own: str) -> Installed | None:
    """A row of a host of this architecture; ``None`` for a line that is none."""
    row = line.split("\t")
    return Installed(_named(row[0], own), *row[1:]) if len(row) in (3, 5) else None


def _named(qualified: str, own: str) -> str:
    name, _, architecture = qualified.partition(":")
    return name if architecture in {own, "all"} else qualified


def deb_software(
    facts: Facts, name: str, wanted: str = "", *, artifact: Artifact | None = None, brought: bool = False
) -> Software:
    """A package as SBOMs name it, whether it is there or not; ``brought`` is what ``Software`` says."""
    row = dpkg_table(facts).get(name)
    if row is None or not row.present:
        return Software("deb", name, "", wanted, artifact=artifact, brought=brought)
    return Software(
        "deb", row.base, row.version, wanted,
        artifact=artifact, brought=brought, architecture=row.architecture, source=row.source,
    )  # fmt: skip
