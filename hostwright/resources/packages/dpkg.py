"""dpkg's database on a host, and the options for apt and dpkg: shared by all resources of packages."""

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

#: Maximum number of runs of a step that fetches from a mirror, if its error is transient. With the backoff in between
#: (``hostwright.apply.jobs.transient``), the runs span over a minute: enough for a mirror that is being synchronised,
#: or a resolver that restarts.
MIRROR_TRIES = 5

#: name with architecture, version, state ("ii " installed, "hi " installed and held, "rc " removed, "iF "
#: half-configured …), architecture, source package
DPKG = Probe(
    "dpkg-query -W -f='${Package}:${Architecture}\\t${Version}\\t${db:Status-Abbrev}\\t${Architecture}\\t"
    "${source:Package}\\n'",
    cap_bytes=1024 * 1024,
)

#: names of the packages that apt marks as automatically installed: autoremove removes them with their dependents
AUTOMATIC = Probe(
    "sed -n -e '/^Package: /h' -e '/^Auto-Installed: 1/{g;s/^Package: //p}' /var/lib/apt/extended_states",
    cap_bytes=256 * 1024,
)

#: 600 s: unattended-upgrades may take that long on a slow disk (Azure/aks-engine#1538, #3068). AutomaticRemove=false: a
#: site may have configured apt to autoremove with every command (mvo5/unattended-upgrades#276), and a step must do
#: exactly what the plan shows.
APT_OPTIONS = (
    "-y -q -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 -o APT::Get::AutomaticRemove=false "
    "-o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold"
)
APT_GET = "DEBIAN_FRONTEND=noninteractive apt-get " + APT_OPTIONS
#: Without package lists apt answers in 20 ms instead of a second, from the installed packages alone; the answer is the
#: same before and after the lists are fetched.
NO_LISTS = (
    "-o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=/nonexistent/ "
    "-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache="
)

#: record of the packages whose files may not be flushed to disk yet; begins with the id of the boot that unpacked them
UNSYNCED = "/var/lib/hostwright/origin/unsynced"
#: Shell functions ``stopped`` and ``synced``, which read and write the record ``UNSYNCED``.
ABOUT_UNSYNCED = sh_file(__file__, "sh/unsynced.sh", unsynced=UNSYNCED)

#: Program for ``sh -c`` that runs its arguments; if a lock is held, it retries every 2 s for 10 minutes.
PATIENCE = (
    'n=0; until output=$("$@" 2>&1); do case $output in *"locked by another process"*|*"Could not get lock"*) ;; '
    '*) n=300 ;; esac; n=$((n + 1)); [ "$n" -le 300 ] || { printf "%s\\n" "$output"; exit 1; }; sleep 2; done; '
    'printf "%s\\n" "$output"'
)
#: Prefix for commands that themselves do not wait for a lock: apt-mark, dpkg, apt-get for its lists.
PATIENTLY = sh("sh -c %s patiently", PATIENCE)

#: Prefix for the names of packages to hold. apt-mark would read all of apt's lists.
HOLD = PATIENTLY + sh(" sh -c %s hold ", 'printf "%s hold\\n" "$@" | dpkg --set-selections')

#: Shell function ``along``: the packages that apt removes in addition to the given ones.
ALONG = sh_file(__file__, "sh/along.sh", no_lists=NO_LISTS)
#: Shell functions that fetch apt's lists: ``fetch_lists``, ``notes``, ``not_fetched``.
LISTS = sh_file(__file__, "sh/lists.sh", apt_options=APT_OPTIONS, patiently=PATIENCE)
#: Shell function ``configured``: configures unpacked packages, even if their services cannot start.
UNSTARTED = sh_file(__file__, "sh/mending/unstarted.sh", patiently=PATIENCE)


def mend_script(removable: Iterable[str] = (), leaving: Iterable[str] = (), patterns: tuple[str, ...] = ()) -> str:
    """Commands that leave no package half-installed, half-configured or waiting for a trigger.

    They remove only ``removable`` and, before everything else, ``leaving``, whose names match ``patterns``. If apt
    wants to remove more, the commands fail and name the additional packages.
    """
    gone = " ".join(leaving)
    values = {"patiently": PATIENCE, "apt_options": APT_OPTIONS}
    values |= {"removable": " ".join(removable), "leaving": gone, "barred": _barred(patterns), "unsynced": UNSYNCED}
    looked = _looked(patterns) if gone else ABOUT_UNSYNCED
    return looked + LISTS + UNSTARTED + sh_file(__file__, "sh/mending/mend.sh", **values).rstrip("\n")


def mend_cut_script(removable: Iterable[str] = ()) -> str:
    """Commands of ``mend_script``, run only if an interrupted dpkg left its journal.

    The database may look complete in spite of a journal.
    """
    return 'if [ -n "$(ls /var/lib/dpkg/updates 2>/dev/null)" ]; then\n' + mend_script(removable) + "\nfi"


@lru_cache(maxsize=8)
def mending(leaving: tuple[str, ...] = (), services: tuple[str, ...] = ()) -> Probe:
    """Probe that prints what ``mend_script`` would do (``sh/mending/mend_probe.sh``); no output if dpkg is in order."""
    return Probe(_looked(leaving, services) + "looked", root=True, shared=True)


def _looked(leaving: tuple[str, ...], services: tuple[str, ...] = ()) -> str:
    values = {"apt_options": APT_OPTIONS, "no_lists": NO_LISTS, "leaving": " ".join(leaving)}
    values |= {"services": " ".join(services), "sound": release.PATH, "unsynced": UNSYNCED}
    return sh_file(__file__, "sh/mending/mend_probe.sh", **values, barred=_barred(leaving)) + ABOUT_UNSYNCED


def _barred(leaving: Iterable[str]) -> str:
    """apt preferences that forbid installing packages whose names match; the first matching pattern decides."""
    pins = ((pattern.removeprefix("!"), 500 if pattern.startswith("!") else -1) for pattern in leaving)
    return "\n\n".join(f"Package: {pattern}\nPin: version *\nPin-Priority: {priority}" for pattern, priority in pins)


MOST_ROWS = 8192  #: maximum number of cached rows (our choice); a host has some hundred


@dataclass(frozen=True, slots=True)
class Installed:
    """One row of dpkg's database."""

    name: str
    version: str
    state: str
    architecture: str = field(default="", compare=False)  #: empty in the record of the packages before the first change
    source: str = field(default="", compare=False)  #: source package; empty in that record

    @property
    def base(self) -> str:
        """Package name without an architecture."""
        return self.name.partition(":")[0]

    @property
    def present(self) -> bool:
        """Whether the package is unpacked and configured."""
        return self.state[1:2] == "i"

    @property
    def held(self) -> bool:
        """Whether the package is held."""
        return self.state[:1] == "h"

    @property
    def broken(self) -> bool:
        """Whether an interrupted dpkg left the package incomplete."""
        return self.state[1:2] in {"U", "F", "H", "W", "t"} or self.state[2:3] == "R"

    @property
    def configuration_only(self) -> bool:
        """Whether the package was removed and only its configuration files remain."""
        return self.state[1:2] == "c"


def dpkg_table(facts: Facts) -> Mapping[str, Installed]:
    """dpkg's database by package name.

    A caller's plan depends only on the rows of the names that it looks up (``Facts.table``).
    """
    return facts.table(DPKG, parse_dpkg)


def dpkg_rows(facts: Facts, wanted: Callable[[Installed], bool]) -> tuple[Installed, ...]:
    """Rows of dpkg's database for which ``wanted`` is true, sorted by name.

    ``wanted`` must be pure and hashable, such as a module-level function: results are cached by it. The caller's plan
    depends on these rows only (``Facts.table``).
    """
    return facts.table(DPKG, _by_choice)[wanted]


@lru_cache(maxsize=64)
def parse_automatic(text: str) -> Mapping[str, str]:
    """Names in the output of ``AUTOMATIC``, each as key and value."""
    return {name: name for name in text.split()}


def is_broken(row: Installed) -> bool:
    """Filter for ``dpkg_rows``: packages that an interrupted dpkg left incomplete."""
    return row.broken


class _Chosen(dict[Callable[[Installed], bool], tuple[Installed, ...]]):
    """Rows of one database by filter, computed on demand."""

    def __init__(self, rows: Iterable[Installed]):
        super().__init__()
        self._rows = tuple(rows)

    def __missing__(self, wanted: Callable[[Installed], bool]) -> tuple[Installed, ...]:
        decision = _decision(wanted)
        found = self[wanted] = tuple(sorted(filter(decision.is_wanted, self._rows), key=attrgetter("name")))
        return found


class _Decision:
    """Cached results of a filter: hosts have most rows in common, and equal rows are the same object."""

    def __init__(self, wanted: Callable[[Installed], bool]):
        self._wanted = wanted
        self._known: dict[int, tuple[bool, Installed]] = {}  # holds the row, so that its ``id`` stays unique

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
    """Rows of ``DPKG`` by package name; other lines are ignored.

    A package of a foreign architecture has the architecture in its name (``libc6:i386``): it is a different package.
    """
    lines = text.splitlines()
    kinds = dict(filter(None, map(_kind, lines)))
    own = kinds.get("dpkg", next(iter(kinds.values())) if len(set(kinds.values())) == 1 else "")
    return {row.name: row for row in map(_row, lines, repeat(own)) if row is not None}


@lru_cache(maxsize=MOST_ROWS)
def _kind(line: str) -> tuple[str, str] | None:
    """Name and architecture of a row; ``None`` if the row has no specific architecture."""
    row = line.split("\t")
    return (row[0].partition(":")[0], row[3]) if len(row) == 5 and row[3] not in {"", "all"} else None


@lru_cache(maxsize=MOST_ROWS)
def _row(line: str, own: str) -> Installed | None:
    """Row of a host with the architecture ``own``; ``None`` for any other line."""
    row = line.split("\t")
    return Installed(_named(row[0], own), *row[1:]) if len(row) in (3, 5) else None


def _named(qualified: str, own: str) -> str:
    name, _, architecture = qualified.partition(":")
    return name if architecture in {own, "all"} else qualified


def deb_software(
    facts: Facts, name: str, wanted: str = "", *, artifact: Artifact | None = None, brought: bool = False
) -> Software:
    """SBOM entry for a package, installed or not; ``brought`` as in ``Software``."""
    row = dpkg_table(facts).get(name)
    if row is None or not row.present:
        return Software("deb", name, "", wanted, artifact=artifact, brought=brought)
    return Software(
        "deb", row.base, row.version, wanted,
        artifact=artifact, brought=brought, architecture=row.architecture, source=row.source,
    )  # fmt: skip
