"""The files of packages as they lie on the host: complete, with links that lead where they should.

``dpkg -V`` would hash gigabytes. What breaks in practice is found by looking: a file that is gone, a library that is
empty, a link that leads elsewhere, a program that says another version. The package that owns it is installed again.
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
    """Commands that unpack these packages again, each at the version that it has.

    What was held stays held, and what was there for another package's sake goes on being so, though apt is told its
    name: else it would be left behind when that package goes.
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
    r"""Every file that packages put below ``root`` is there, and the links of their libraries lead where they should.

    In ``libraries`` a packaged link must lead to another packaged file of the same stem in the same directory, and a
    packaged file must not be empty. Contents are not compared: ``dpkg -V`` would hash gigabytes. The packages at fault
    are installed again, each at the version that it has, and stay held or not. A file of no package to which such a
    link leads is set aside, or the next ldconfig would turn the link again. Whose packages they are is the concern of
    other states (``Debs``), and so is their removal.

    >>> tree = PackagedTree("/usr/local/tool", ("/usr/local/tool/lib",), "/etc/apt/sources.list.d/tool.list")
    >>> listing = "gone\ttool\t/usr/local/tool/bin/tool\n"
    >>> print(plan_text(tree, {"dpkg-query": "tool\t1.2\tii \n", "others /usr/local/tool": listing}))
    ~ packaged files below /usr/local/tool: /usr/local/tool/bin/tool gone → as packaged (tool installed again)
    """

    root: str  #: the directory whose files are looked for
    libraries: tuple[str, ...]  #: directories of shared objects in it
    source: str  #: the source list that carries the packages; empty for all of the host's

    def probes(self) -> tuple[Probe, ...]:
        return (DPKG, self.tree.probe)

    @property
    def tree(self) -> PackageDirectory:
        """The directory, for other states of the same packages: all of them ask once."""
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
    """What is wrong with a packaged library, or nothing.

    A link into nothing is not at fault itself: the package of the file that is missing is mended.
    """
    kind, size, target = libraries[path]
    if kind != "l":
        return "empty" if size == "0" else ""
    goal = str(PurePosixPath(path).parent / target)
    same_stem = goal.partition(".so")[0] == path.partition(".so")[0]
    return "" if same_stem and (goal in owners or goal not in libraries) else f"leads to {target}"


def _stranger(path: str, libraries: Mapping[str, tuple[str, str, str]], owners: Mapping[str, str]) -> str:
    """The file of no package to which ldconfig turned a packaged link, since its name has a higher number; or nothing.

    As long as it is there, the next ldconfig does so again.
    """
    kind, _, target = libraries.get(path, ("", "", ""))
    goal = str(PurePosixPath(path).parent / target)
    return goal if kind == "l" and goal not in owners and libraries.get(goal, ("",))[0] == "f" else ""


@dataclass(frozen=True, slots=True)
class PackagedPrograms(Resource):
    r"""The programs, libraries and units of these packages are in their places, and not empty.

    Documentation is not checked: images leave it out on purpose. The packages at fault are installed again, each at the
    version that it has. Whose packages they are is the concern of other states (``Debs``), and so is their removal.

    >>> answers = {"dpkg-query": "tool\t1.2\tii \n", "/var/lib/dpkg/info": "tool.list:/usr/bin/tool\n"}
    >>> print(plan_text(PackagedPrograms(("tool",)), answers))
    ~ files of tool: /usr/bin/tool gone → as packaged
    """

    KIND: ClassVar = "programs"

    packages: tuple[str, ...]  #: their names
    #: the packages of the mirror, where they come from there; ``None``: from the sources of the host
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
                "IFS='\n'; set -f",  # the shell splits the list in memory; `read` would cost a system call per byte
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
        """None beside those of the states that install them."""
        return ()

    def from_mirror(self, mirror: PackageMirror, /) -> PackagedPrograms:
        """Taken from the mirror where that has them all: the toolkit's are of a repository of their own."""
        return replace(self, mirror=mirror)

    def removal(self) -> tuple[Resource, ...]:
        return ()  # the packages' own


@dataclass(frozen=True, slots=True)
class CommandReports(Resource):
    r"""A program answers with ``expect`` when it is run with ``argument``.

    It counts once all of ``packages`` are installed at their versions. If it answers otherwise then, something else was
    put over their files, and all of them are installed again. One that is missing is left to ``PackagedTree``. It is
    given 10 s to answer. Nothing of it stays behind.

    >>> source = "/etc/apt/sources.list.d/tool.list"
    >>> tool = CommandReports("/usr/bin/tool", "--version", "1.2.7", ("tool=1.2.7-1",), source)
    >>> print(plan_text(tool, {"dpkg-query": "tool\t1.2.7-1\tii \n", "timeout 10": "tool, version 1.2.3\n"}))
    ~ /usr/bin/tool --version: tool, version 1.2.3 → 1.2.7
    """

    KIND: ClassVar = "command-reports"

    program: str  #: its path
    argument: str  #: the one word that it is run with
    expect: str  #: a word of its answer, with white space or nothing before and after it
    packages: tuple[str, ...]  #: what the program consists of, as ``name=version``
    source: str  #: the source list that carries the packages; empty for all of the host's
    #: the directory of these packages alone: what people changed there is kept
    tree: PackageDirectory | None = field(default=None, metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        asked = (DPKG, Probe(sh("timeout 10 %s %s", self.program, self.argument)))
        return (*asked, self.tree.probe) if self.tree else asked

    def plan(self, facts: Facts) -> Change | None:
        table = dpkg_table(facts)
        wanted = dict(word.split("=", 1) for word in self.packages)
        rows = tuple(row for name, version in wanted.items() if (row := table.get(name)) and row.version == version)
        answer = facts[self.probes()[1]]
        gone = answer.status == 127  # then its file is missing: PackagedTree's finding, not another version
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
