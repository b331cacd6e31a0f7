"""Read the installed software of a host by one probe that runs the finders of all roles.

A finder is a role's script that detects the role's software. The probe searches other users' environments as root. In
these environments, it therefore runs nothing and reads only metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hostwright.audit.fleetaudit import NotChecked, Reading
from hostwright.audit.judging.context import AuditContext, Unread
from hostwright.common.canonical import Same
from hostwright.common.quoting import sh, sh_file
from hostwright.common.untrusted import Pattern
from hostwright.plan.host.release import PATH
from hostwright.plan.model import Facts, Probe
from hostwright.plan.roles.found import Finder, OnHost, PythonPackage
from hostwright.plan.roles.role import Role
from hostwright.resources.packages.packages import DPKG, dpkg_table

CHECK = "environments"  #: name of the check that is reported as not made if a search for software was stopped
#: maximum number of Python packages, and of conda environments, to read per host (our choice)
MOST = 300
DEPTH = 9  #: maximum number of directory levels below a home directory to search for Python packages
#: time limit in seconds for each search for software (our choice). Half a million file names take less.
SEARCH_S = 10.0
#: beginnings of paths in home directories. Software there differs between hosts, and does not make a host an outlier.
HOMES = ("/home/", "/root/")
CELLS = 8  #: maximum number of fields to keep of each row that the search prints

#: types of file systems that are not searched for software. Many hosts share network file systems.
_ELSEWHERE = ("nfs", "nfs4", "cifs", "smb3", "lustre", "ceph", "gpfs", "beegfs", "autofs", "proc", "sysfs")
#: names of directories that are not searched for software, such as caches
_SKIPPED = ("pkgs", "node_modules", ".git", ".cache", ".snapshot", "*[[:cntrl:]]*")
_OURS = "/opt/hostwright"

_METADATA = Pattern(
    r"(/.{1,300}?)/lib(?:64)?/python(3(?:\.[0-9]{1,2})?)/(?:site|dist)-packages/"
    r"([A-Za-z0-9._-]{1,80}?)-([0-9][A-Za-z0-9_.+!]{0,60}?)"
    r"(?:-py3\.[0-9]{1,2})?\.(?:dist|egg)-info"
)
_CONDA = Pattern(r"(/.{1,300})/conda-meta/([a-z0-9_.-]{1,80})-([0-9][A-Za-z0-9_.+!]{0,60})-[A-Za-z0-9_.]{1,100}\.json")
_SCOPE = Pattern(r"[a-z0-9_]{1,60}")


@dataclass(frozen=True)
class Finders:
    """The finders of a host's roles, by layer. A finder detects installed software."""

    by_layer: Mapping[str, Finder]

    @cached_property
    def probe(self) -> Probe:
        """The probe that runs all finders. The probe ``DPKG`` is also needed to evaluate the output."""
        scripts = ((layer, finder.script) for layer, finder in self.by_layer.items() if finder.script)
        parts = (sh("(scope=%s\n", layer) + text.strip("\n") + "\n)\n" for layer, text in scripts)
        names = tuple(dict.fromkeys(name for finder in self.by_layer.values() for name in finder.packages))
        search = sh_file(
            __file__, "search.sh", record=PATH, tests=_tests(names), seconds=str(int(SEARCH_S)), most=str(MOST)
        )
        return Probe(sh_file(__file__, "prelude.sh") + "".join(parts) + (search if names else ""), root=True)

    @property
    def probes(self) -> tuple[Probe, ...]:
        """The probes that the finders need, including ``DPKG``; none if no role has a finder."""
        return (self.probe, DPKG) if self.by_layer else ()

    def on_host(self, facts: Facts) -> Mapping[str, OnHost]:
        """Return the installed software by layer, as each finder detects it in ``facts``.

        Raises ``KeyError`` if the probe was not run.
        """
        text = facts[self.probe].text
        debs = {row.base: row.version for row in dpkg_table(facts).values() if row.present}
        rows, packages = _rows(text), tuple(found_packages(text))
        return {
            layer: OnHost(
                tuple(row for scope, row in rows if scope == layer),
                debs,
                tuple(one for one in packages if one.name in {_canonical(name) for name in finder.packages}),
            )
            for layer, finder in self.by_layer.items()
        }

    def readings(self, facts: Facts) -> tuple[Reading, ...]:
        """Return the installed software in ``facts`` as readings of an audit; empty if the probe was not run."""
        try:
            found = self.on_host(facts)
        except KeyError:
            return ()
        return tuple(
            Reading(layer, name, value, found=True)
            for layer, finder in self.by_layer.items()
            for name, value in finder.values(found[layer])
        )


def finders_of(roles: Iterable[Role]) -> Finders:
    """Return the finders of ``roles`` in this order: for GPUs, for other system software, for Python
    environments only.
    """
    parts = [(role, part.FOUND) for role in roles if (part := role.part("found"))]
    parts.sort(key=lambda one: (not one[1].script, not one[0].part_name("gpus")))
    return Finders({role.name: finder for role, finder in parts})


def readings_found(finders: Finders, ctx: AuditContext) -> tuple[Reading, ...]:
    """Return the result of ``Finders.readings`` for a host, computed once for hosts with equal facts.

    Empty if a probe was not run or timed out.
    """
    try:
        for probe in finders.probes:
            ctx.require(probe)
        return ctx.settled(("found", Same(finders)), finders.readings)
    except Unread:
        return ()


def cut_short(finders: Finders, facts: Facts, layer: str) -> Iterator[NotChecked]:
    """Report that a limit stopped the search for Python environments, so that software of ``layer`` may be missing."""
    if finders.by_layer and finders.probe in facts:
        text = facts[finders.probe].text
        if "\n\tbound\ttime\n" in f"\n{text}":  # The script prints this row when the time limit stops the search.
            yield NotChecked(layer, CHECK, f"the search stopped after {SEARCH_S:.0f} s and may be incomplete")
        elif text.count("\n/") >= MOST - 1:
            yield NotChecked(layer, CHECK, f"the search stopped after {MOST} packages and may be incomplete")


def _tests(names: Sequence[str]) -> tuple[str, ...]:
    plain = [name.replace("-", "[-_]") for name in names]
    metadata = _any(*(f"{name}-[0-9]*.{kind}-info" for name in plain for kind in ("dist", "egg")))
    conda = _any(*(f"{name}-[0-9]*.json" for name in plain))
    elsewhere = [word for kind in _ELSEWHERE for word in ("-fstype", kind, "-o")]
    return (
        *("-maxdepth", str(DEPTH), "(", *elsewhere, "-path", _OURS, "-o", *_any(*_SKIPPED), ")", "-prune"),
        *("-o", "-path", "*/*-packages/*", "(", "(", *metadata, ")", "-print", "-o", "-true", ")", "-prune"),
        *("-o", "-path", "*/conda-meta/*", "(", "(", *conda, ")", "-print", "-o", "-true", ")", "-prune"),
    )


def _any(*patterns: str) -> tuple[str, ...]:
    return tuple(word for pattern in patterns for word in ("-o", "-name", pattern))[1:]


def _rows(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Parse the output of the finders' scripts into pairs of layer and fields. An incomplete last line is skipped."""
    lines = text.rpartition("\n")[0].split("\n")
    cells = [line.split("\t")[: CELLS + 1] for line in lines if "\t" in line]
    return tuple((row[0], tuple(row[1:])) for row in cells if not row[0] or _SCOPE.fullmatch(row[0]))


def found_packages(text: str) -> Iterator[PythonPackage]:
    """Yield the Python packages in ``text``, a list of metadata files, with the names that pip or conda uses.

    >>> list(found_packages("/opt/a/lib/python3.11/site-packages/science-2.3.0.dist-info\\n"))
    [PythonPackage(environment='/opt/a', name='science', version='2.3.0', python='3.11', conda=False)]
    >>> [one.name for one in found_packages("/opt/c/conda-meta/science-2.2.0-py311_0.json\\n")]
    ['science']
    """
    for line in text.rpartition("\n")[0].split("\n"):
        if match := _METADATA.fullmatch(line):
            yield PythonPackage(match[1], _canonical(match[3]), match[4], match[2])
        elif match := _CONDA.fullmatch(line):
            yield PythonPackage(match[1], _canonical(match[2]), match[3], conda=True)


def _canonical(name: str) -> str:
    return name.lower().replace("_", "-")
