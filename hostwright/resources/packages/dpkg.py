"""dpkg's database on a host, and options for apt and dpkg: shared by all resources of packages."""

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

#: maximum number of attempts to fetch packages from a mirror; five attempts take over a minute
MIRROR_TRIES = 5

#: probe for dpkg's database. A row has a package's name with architecture, the version, the state ("ii " means
#: installed, "hi " held, "rc " removed, "iF " half-configured), the architecture and the source package.
DPKG = Probe(
    "dpkg-query -W -f='${Package}:${Architecture}\\t${Version}\\t${db:Status-Abbrev}\\t${Architecture}\\t"
    "${source:Package}\\n'",
    cap_bytes=1024 * 1024,
)

#: probe that prints the packages that apt marks as automatically installed, one per line
AUTOMATIC = Probe(
    "sed -n -e '/^Package: /h' -e '/^Auto-Installed: 1/{g;s/^Package: //p}' /var/lib/apt/extended_states",
    cap_bytes=256 * 1024,
)

#: Options of every apt-get command. unattended-upgrades may hold the lock for 600 s (Azure/aks-engine#1538). Without
#: AutomaticRemove=false, a site's settings may make apt autoremove every time (mvo5/unattended-upgrades#276).
APT_OPTIONS = (
    "-y -q -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 -o APT::Get::AutomaticRemove=false "
    "-o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold"
)
APT_GET = "DEBIAN_FRONTEND=noninteractive apt-get " + APT_OPTIONS
#: options with which apt reads no package lists, so that a command takes 20 ms instead of 1 s
NO_LISTS = (
    "-o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=/nonexistent/ "
    "-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache="
)

#: path of a file with a boot id and the packages unpacked in that boot; their files may not be on the disk yet
UNSYNCED = "/var/lib/hostwright/origin/unsynced"
#: shell functions ``stopped`` and ``synced`` that read and write the file ``UNSYNCED``
ABOUT_UNSYNCED = sh_file(__file__, "sh/unsynced.sh", unsynced=UNSYNCED)

#: program for ``sh -c`` that repeats a command every 2 s for at most 10 minutes while another process holds a lock
PATIENCE = (
    'n=0; until output=$("$@" 2>&1); do case $output in *"locked by another process"*|*"Could not get lock"*) ;; '
    '*) n=300 ;; esac; n=$((n + 1)); [ "$n" -le 300 ] || { printf "%s\\n" "$output"; exit 1; }; sleep 2; done; '
    'printf "%s\\n" "$output"'
)
#: prefix for a command that does not wait for a lock itself, such as apt-mark, dpkg or ``apt-get update``
PATIENTLY = sh("sh -c %s patiently", PATIENCE)

#: prefix of a command that holds the packages in the arguments; faster than ``apt-mark hold``
HOLD = PATIENTLY + sh(" sh -c %s hold ", 'printf "%s hold\\n" "$@" | dpkg --set-selections')

#: shell function ``along VERB PACKAGE...`` that prints the packages that apt would remove together with PACKAGE
ALONG = sh_file(__file__, "sh/along.sh", no_lists=NO_LISTS)
#: shell functions ``fetch_lists``, ``notes`` and ``not_fetched`` for updating apt's package lists
LISTS = sh_file(__file__, "sh/lists.sh", apt_options=APT_OPTIONS, patiently=PATIENCE)
#: shell function ``configured`` that configures unpacked packages, even if a service of a package cannot start
UNSTARTED = sh_file(__file__, "sh/mending/unstarted.sh", patiently=PATIENCE)


def mend_script(removable: Iterable[str] = (), leaving: Iterable[str] = (), patterns: tuple[str, ...] = ()) -> str:
    """Commands that repair packages, so that none is half-installed, half-configured or waiting for a trigger.

    The commands first remove the packages ``leaving``, and later may remove ``removable``. If apt needs to remove
    another package, the commands fail and name this package.
    """
    gone = " ".join(leaving)
    values = {"patiently": PATIENCE, "apt_options": APT_OPTIONS}
    values |= {"removable": " ".join(removable), "leaving": gone, "barred": _barred(patterns), "unsynced": UNSYNCED}
    looked = _looked(patterns) if gone else ABOUT_UNSYNCED
    return looked + LISTS + UNSTARTED + sh_file(__file__, "sh/mending/mend.sh", **values).rstrip("\n")


def mend_cut_script(removable: Iterable[str] = ()) -> str:
    """Commands of ``mend_script(removable)``, run only if the host has a journal of an interrupted dpkg."""
    return 'if [ -n "$(ls /var/lib/dpkg/updates 2>/dev/null)" ]; then\n' + mend_script(removable) + "\nfi"


@lru_cache(maxsize=8)
def mending(leaving: tuple[str, ...] = (), services: tuple[str, ...] = ()) -> Probe:
    """Probe that prints the actions of ``mend_script`` (``sh/mending/mend_probe.sh``), nothing if dpkg is in order."""
    return Probe(_looked(leaving, services) + "looked", root=True, shared=True)


def _looked(leaving: tuple[str, ...], services: tuple[str, ...] = ()) -> str:
    values = {"apt_options": APT_OPTIONS, "no_lists": NO_LISTS, "leaving": " ".join(leaving)}
    values |= {"services": " ".join(services), "sound": release.PATH, "unsynced": UNSYNCED}
    return sh_file(__file__, "sh/mending/mend_probe.sh", **values, barred=_barred(leaving)) + ABOUT_UNSYNCED


def _barred(leaving: Iterable[str]) -> str:
    pins = ((pattern.removeprefix("!"), 500 if pattern.startswith("!") else -1) for pattern in leaving)
    return "\n\n".join(f"Package: {pattern}\nPin: version *\nPin-Priority: {priority}" for pattern, priority in pins)


MOST_ROWS = 8192  #: maximum number of cached rows of dpkg's database per filter (our choice)


@dataclass(frozen=True, slots=True)
class Installed:
    """A package in dpkg's database on a host."""

    name: str
    version: str
    state: str
    #: architecture of the package; empty in rows of ``PACKAGES_BEFORE``
    architecture: str = field(default="", compare=False)
    source: str = field(default="", compare=False)  #: source package; empty in rows of ``PACKAGES_BEFORE``

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
    """dpkg's database on the host: package name → row."""
    return facts.table(DPKG, parse_dpkg)


def dpkg_rows(facts: Facts, wanted: Callable[[Installed], bool]) -> tuple[Installed, ...]:
    """Rows of dpkg's database for which ``wanted`` is true, sorted by name.

    ``wanted`` must be pure and hashable, such as a module-level function, because it is the key of cached results.
    """
    return facts.table(DPKG, _by_choice)[wanted]


@lru_cache(maxsize=64)
def parse_automatic(text: str) -> Mapping[str, str]:
    """Parse the output of ``AUTOMATIC``. Each name is key and value, because ``Facts.table`` needs a mapping."""
    return {name: name for name in text.split()}


def is_broken(row: Installed) -> bool:
    """Whether an interrupted dpkg left the package of ``row`` incomplete; a filter for ``dpkg_rows``."""
    return row.broken


class _Chosen(dict[Callable[[Installed], bool], tuple[Installed, ...]]):
    def __init__(self, rows: Iterable[Installed]):
        super().__init__()
        self._rows = tuple(rows)

    def __missing__(self, wanted: Callable[[Installed], bool]) -> tuple[Installed, ...]:
        decision = _decision(wanted)
        found = self[wanted] = tuple(sorted(filter(decision.is_wanted, self._rows), key=attrgetter("name")))
        return found


class _Decision:
    def __init__(self, wanted: Callable[[Installed], bool]):
        self._wanted = wanted
        # the cache stores the row too, so that Python does not reuse the row's id for another object
        self._known: dict[int, tuple[bool, Installed]] = {}

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
    """Parse the output of the probe ``DPKG``: package name → row.

    The name of a package of a foreign architecture includes the architecture (``libc6:i386``).
    """
    lines = text.splitlines()
    kinds = dict(filter(None, map(_kind, lines)))
    own = kinds.get("dpkg", next(iter(kinds.values())) if len(set(kinds.values())) == 1 else "")
    return {row.name: row for row in map(_row, lines, repeat(own)) if row is not None}


@lru_cache(maxsize=MOST_ROWS)
def _kind(line: str) -> tuple[str, str] | None:
    row = line.split("\t")
    return (row[0].partition(":")[0], row[3]) if len(row) == 5 and row[3] not in {"", "all"} else None


@lru_cache(maxsize=MOST_ROWS)
def _row(line: str, own: str) -> Installed | None:
    row = line.split("\t")
    return Installed(_named(row[0], own), *row[1:]) if len(row) in (3, 5) else None


def _named(qualified: str, own: str) -> str:
    name, _, architecture = qualified.partition(":")
    return name if architecture in {own, "all"} else qualified


def deb_software(
    facts: Facts, name: str, wanted: str = "", *, artifact: Artifact | None = None, brought: bool = False
) -> Software:
    """SBOM entry for the package ``name``, installed or not; for ``brought``, see ``Software``."""
    row = dpkg_table(facts).get(name)
    if row is None or not row.present:
        return Software("deb", name, "", wanted, artifact=artifact, brought=brought)
    return Software(
        "deb", row.base, row.version, wanted,
        artifact=artifact, brought=brought, architecture=row.architecture, source=row.source,
    )  # fmt: skip
