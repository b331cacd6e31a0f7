"""States of the files of packages: all exist, and their links have the right targets.

``dpkg -V`` would hash gigabytes. These states find the usual damage without hashing and reinstall the package: a
missing file, an empty library, a link with another target, a program that reports another version.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import ClassVar

from hostwright.common.quoting import sh, words
from hostwright.common.untrusted import Pattern
from hostwright.plan.model import Change, Facts, Probe, Resource, Step
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.files.aside import KEEP_ASIDE, kept_aside
from hostwright.resources.files.paths import few
from hostwright.resources.packages.mirrored import PROBES, take
from hostwright.resources.packages.others import Others, PackageDirectory
from hostwright.resources.packages.packages import (
    DPKG,
    DPKG_LOCK,
    MIRROR_TRIES,
    PATIENTLY,
    Installed,
    dpkg_table,
    hold_script,
    install_script,
)
from hostwright.stack.stack import Artifact
from hostwright.stack.store.debs import PackageMirror

_VERSION = Pattern(r"[0-9]\.[0-9]")


def reinstall_script(rows: tuple[Installed, ...], source: str, mirrored: tuple[Artifact, ...] = ()) -> str:
    """Commands that reinstall the packages ``rows``, each at its installed version.

    Holds and marks of automatic installation are kept.
    """
    lines = [
        "auto=$(apt-mark showauto " + words(tuple(row.name for row in rows)) + ")",
        install_script(
            tuple(f"{row.name}={row.version}" for row in rows), reinstall=True, source=source, mirrored=mirrored
        ),
        'if [ -n "$auto" ]; then ' + PATIENTLY + " apt-mark auto $auto; fi",
    ]
    held = tuple(row.name for row in rows if row.held)
    if held:
        lines.append(hold_script(held))
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class PackagedTree(Resource):
    r"""All files of packages below ``root`` exist, and the links of their libraries have the right targets.

    In ``libraries``, a packaged link must point to another packaged file of the same stem, and a packaged file must not
    be empty. Contents are not compared. Damaged packages are reinstalled at their installed versions, and keep their
    holds. A file that no package owns is moved aside if a packaged link points to it. ``Debs`` installs and removes the
    packages.

    >>> tree = PackagedTree("/usr/local/tool", ("/usr/local/tool/lib",), "/etc/apt/sources.list.d/tool.list")
    >>> listing = "gone\ttool\t/usr/local/tool/bin/tool\n"
    >>> print(plan_text(tree, {"dpkg-query": "tool\t1.2\tii \n", "others /usr/local/tool": listing}))
    ~ packaged files below /usr/local/tool: /usr/local/tool/bin/tool gone → as packaged (tool installed again)
    """

    root: str  #: directory whose packaged files are checked
    libraries: tuple[str, ...]  #: paths of subdirectories of ``root`` with shared objects
    source: str  #: source list of the packages; default: all sources of the host

    def probes(self) -> tuple[Probe, ...]:
        return (DPKG, self.tree.probe)

    @property
    def tree(self) -> PackageDirectory:
        """``root`` with ``libraries``, for other states of the same packages, so that all these states share one
        probe.
        """
        return PackageDirectory(self.root, self.libraries)

    def plan(self, facts: Facts) -> Change | None:
        owners: dict[str, str] = {}
        wrong: defaultdict[str, list[str]] = defaultdict(list)
        libraries: dict[str, tuple[str, str, str]] = {}
        for line in facts[self.tree.probe].text.splitlines():
            match line.split("\t"):
                case ["found", file_kind, size, path, target]:
                    libraries[path] = (file_kind, size, target)
                case ["packaged", package, path]:
                    owners[path] = package
                case ["gone", package, path]:
                    owners[path] = package
                    wrong[package].append(f"{path} gone")
        for path, package in owners.items():
            if path in libraries and (fault := _fault(path, libraries, owners)):
                wrong[package].append(f"{path} {fault}")
        table = dpkg_table(facts)
        rows = tuple(table[name] for name in sorted(wrong) if name in table and table[name].present)
        if not rows:
            return None
        others = Others.of(facts, self.tree).within(row.name for row in rows)
        aside = tuple(sorted({goal for path in owners if (goal := _stranger(path, libraries, owners))}))
        gone = "".join(sh("keep_aside %s; rm -f -- %s\n", path, path) for path in aside)
        script = others.keeping + (KEEP_ASIDE + gone if aside else "") + reinstall_script(rows, self.source)
        return Change(
            f"packaged files below {self.root}",
            few([fault for row in rows for fault in sorted(wrong[row.name])]),
            f"as packaged ({few([row.name for row in rows])} installed again)",
            (Step(script, DPKG_LOCK, timeout_s=3600, tries=MIRROR_TRIES),),
            warnings=(*others.kept, *kept_aside(f"packages below {self.root}", aside)),
        )

    def removal(self) -> tuple[Resource, ...]:
        return ()


def _fault(path: str, libraries: Mapping[str, tuple[str, str, str]], owners: Mapping[str, str]) -> str:
    kind, size, target = libraries[path]
    if kind != "l":
        return "empty" if size == "0" else ""
    goal = str(PurePosixPath(path).parent / target)
    same_stem = goal.partition(".so")[0] == path.partition(".so")[0]
    return "" if same_stem and (goal in owners or goal not in libraries) else f"leads to {target}"


def _stranger(path: str, libraries: Mapping[str, tuple[str, str, str]], owners: Mapping[str, str]) -> str:
    """Return the target of the packaged link at ``path`` if no package owns the target.

    ldconfig points a link to the file with the highest version number, even if no package owns the file.
    """
    kind, _, target = libraries.get(path, ("", "", ""))
    goal = str(PurePosixPath(path).parent / target)
    return goal if kind == "l" and goal not in owners and libraries.get(goal, ("",))[0] == "f" else ""


@dataclass(frozen=True, slots=True)
class PackagedPrograms(Resource):
    r"""The programs, libraries and units of these packages exist and are not empty.

    Documentation is not checked, because images may leave it out. Damaged packages are reinstalled at their installed
    versions. ``Debs`` installs and removes the packages.

    >>> answers = {"dpkg-query": "tool\t1.2\tii \n", "/var/lib/dpkg/info": "tool.list:/usr/bin/tool\n"}
    >>> print(plan_text(PackagedPrograms(("tool",)), answers))
    ~ files of tool: /usr/bin/tool gone → as packaged
    """

    KIND: ClassVar = "programs"

    packages: tuple[str, ...]  #: names of the packages whose programs are checked
    #: mirror from which the host gets the packages; default: the host's own sources
    mirror: PackageMirror | None = field(default=None, repr=False, metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        script = "\n".join(
            [
                sh("names=%s", " ".join(self.packages)),
                'for name in $names; do set -- "$@" "/var/lib/dpkg/info/$name.list"; done',
                "for list in /var/lib/dpkg/info/*:*.list; do  # a pattern for each name would read the directory again",
                "  name=${list##*/}",
                '  case " $names " in *" ${name%%:*} "*) set -- "$@" "$list" ;; esac',
                "done",
                "IFS='\n'; set -f",  # the shell's `read` costs a system call per byte of input
                "for entry in $(grep -EHs -e '/s?bin/.|[.]so[.]|/systemd/system/.' -- \"$@\"); do",
                '  [ -s "${entry#*.list:}" ] || echo "${entry#/var/lib/dpkg/info/}"',
                "done",
            ]
        )
        return (DPKG, *(PROBES if self.mirror else ()), Probe(script, shared=True))

    def plan(self, facts: Facts) -> Change | None:
        table = dpkg_table(facts)
        gone = [line.partition(".list:")[::2] for line in facts[self.probes()[-1]].text.splitlines()]
        gone = [(name.partition(":")[0], path) for name, path in gone]
        damaged = {name: table[name] for name, _ in gone if name in table and table[name].present}
        if not damaged:
            return None
        what, have = f"files of {' '.join(damaged)}", few([f"{path} gone" for name, path in gone if name in damaged])
        taken = take(self.mirror, facts, [f"{row.name}={row.version}" for row in damaged.values()])
        script = reinstall_script(tuple(damaged.values()), "", taken.files)
        step = Step(script, DPKG_LOCK, tries=MIRROR_TRIES)
        return Change(what, have, "as packaged" + taken.noted, (step,), artifacts=taken.names)

    def packages_for(self, _facts: Facts | None, /) -> tuple[str, ...]:
        """Return no packages for the mirror, because other states install them."""
        return ()

    def from_mirror(self, mirror: PackageMirror, /) -> PackagedPrograms:
        return replace(self, mirror=mirror)

    def removal(self) -> tuple[Resource, ...]:
        return ()  # the states that install the packages also remove them


@dataclass(frozen=True, slots=True)
class CommandReports(Resource):
    r"""A program prints ``expect`` when it is run with ``argument``.

    The program must exit within 10 s. The program is run only if all of ``packages`` are installed at their versions.
    If the output differs, all ``packages`` are reinstalled. ``PackagedTree`` handles a missing program. When the role
    is removed, nothing is left to remove.

    >>> source = "/etc/apt/sources.list.d/tool.list"
    >>> tool = CommandReports("/usr/bin/tool", "--version", "1.2.7", ("tool=1.2.7-1",), source)
    >>> print(plan_text(tool, {"dpkg-query": "tool\t1.2.7-1\tii \n", "timeout 10": "tool, version 1.2.3\n"}))
    ~ /usr/bin/tool --version: tool, version 1.2.3 → 1.2.7
    """

    KIND: ClassVar = "command-reports"

    program: str  #: path of the program to run
    argument: str  #: only argument of the program call
    expect: str  #: word that the program's output must contain, delimited by white space
    packages: tuple[str, ...]  #: packages that contain the program, as ``name=version``
    source: str  #: source list of the packages; default: all sources of the host
    #: directory for these packages only; files that people changed in this directory are kept
    tree: PackageDirectory | None = field(default=None, metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        asked = (DPKG, Probe(sh("timeout 10 %s %s", self.program, self.argument)))
        return (*asked, self.tree.probe) if self.tree else asked

    def plan(self, facts: Facts) -> Change | None:
        table = dpkg_table(facts)
        wanted = dict(word.split("=", 1) for word in self.packages)
        rows = tuple(row for name, version in wanted.items() if (row := table.get(name)) and row.version == version)
        answer = facts[self.probes()[1]]
        gone = answer.status == 127  # a shell exits with 127 if the program is missing; `PackagedTree` reports this
        if gone or len(rows) < len(wanted) or self.expect in answer.text.split():
            return None
        versions = [line for line in answer.strip().splitlines() if _VERSION.search(line)]
        others = Others.of(facts, self.tree).within(wanted)
        script = others.keeping + reinstall_script(rows, self.source)
        return Change(
            f"{self.program} {self.argument}",
            versions[0].strip() if versions else f"no version (status {answer.status})",
            self.expect,
            (Step(script, DPKG_LOCK, timeout_s=3600, tries=MIRROR_TRIES),),
            warnings=others.kept,
        )

    def removal(self) -> tuple[Resource, ...]:
        return ()
