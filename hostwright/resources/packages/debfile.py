"""States of packages from ``.deb`` files of the stack, for versions that no repository of the host has."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.common.quoting import sh, words
from hostwright.plan.model import Change, Facts, Probe, Resource, Step
from hostwright.plan.roles.software import Software
from hostwright.resources.files.paths import ABSENT
from hostwright.resources.originals import note_installed
from hostwright.resources.packages.debs_gone import DebsGone
from hostwright.resources.packages.dpkg import deb_software
from hostwright.resources.packages.packages import (
    DPKG,
    DPKG_LOCK,
    MIRROR_TRIES,
    PATIENTLY,
    dpkg_table,
    hold_script,
    install_script,
)
from hostwright.stack.stack import Artifact
from hostwright.stack.store.hostcache import host_path


@dataclass(frozen=True, slots=True)
class DebFile(Resource):
    r"""A package is installed from a ``.deb`` file of the stack, at exactly this version, and held.

    Use this state if no repository of the host has this version. The package's dependencies are installed from the
    host's repositories. The change restarts ``unit`` if this unit is enabled. If ``file`` is missing or empty on the
    host, the package is reinstalled. When the role is removed, the package is removed, unless it was installed before.

    >>> file = Artifact(name="agent", file="agent_2.1_amd64.deb", sha256="0" * 64)
    >>> print(plan_text(DebFile(file, "agent", "2.1"), {"dpkg-query": "agent\t2.0\tii \n"}))
    ~ package agent: 2.0 → 2.1, held
    >>> agent = DebFile(file, "agent", "2.1", file="/usr/bin/agent")
    >>> print(plan_text(agent, {"dpkg-query": "agent\t2.1\thi \n"}))
    ~ package agent: /usr/bin/agent gone → 2.1, held
    """

    artifact: Artifact  #: package file in the format ``.deb``
    package: str  #: name of the package
    version: str  #: version of the package in dpkg's notation
    unit: str = ""  #: systemd unit that is restarted after the installation
    #: path of a file in the package; if the file is missing or empty on the host, the package is damaged
    file: str = ""

    @property
    def _there(self) -> Probe:
        return Probe(sh("[ -s %s ]", self.file))

    def probes(self) -> tuple[Probe, ...]:
        return (DPKG, self._there) if self.file else (DPKG,)

    def plan(self, facts: Facts) -> Change | None:
        row = dpkg_table(facts).get(self.package)
        right = row is not None and row.present and row.version == self.version
        gone = right and self.file != "" and not facts[self._there].ok
        hold = hold_script((self.package,))
        if row is not None and right and row.held and not gone:
            return None
        what, want = f"package {self.package}", f"{self.version}, held"
        if right and not gone:
            return Change(what, "not held", want, (Step(hold, lock=DPKG_LOCK),))
        install = install_script((host_path(self.artifact),), downgrade=True, reinstall=gone, names=(self.package,))
        script = [install, hold]
        if self.unit:
            restart = "if systemctl -q is-enabled %s 2>/dev/null; then systemctl restart %s || true; fi"
            script.append(sh(restart, self.unit, self.unit))
        have = f"{self.file} gone" if gone else row.version if row is not None and row.present else ABSENT
        step = Step("\n".join(script), lock=DPKG_LOCK, tries=MIRROR_TRIES)
        return Change(what, have, want, (step,), artifacts=(self.artifact.name,))

    def software(self, facts: Facts) -> tuple[Software, ...]:
        return (deb_software(facts, self.package, self.version, artifact=self.artifact, brought=True),)

    def removal(self) -> tuple[Resource, ...]:
        return (DebsGone((self.package,)),)


@dataclass(frozen=True, slots=True)
class DebFiles(Resource):
    r"""Packages that need each other's exact version are installed from files of the stack, all by one run of dpkg.

    All other dependencies must be installed already. When the role is removed, the packages are removed, unless they
    were installed before.

    >>> file = Artifact(name="agent", file="agent_2.1_amd64.deb", sha256="0" * 64)
    >>> library = Artifact(name="library", file="libagent_2.1_amd64.deb", sha256="0" * 64)
    >>> both = DebFiles((DebFile(library, "libagent", "2.1"), DebFile(file, "agent", "2.1")))
    >>> print(plan_text(both, {"dpkg-query": "libagent\t3.0\tii \nagent\t2.1\thi \n"}))
    ~ packages libagent agent: libagent 3.0 → libagent 2.1, agent 2.1, held
    """

    files: tuple[DebFile, ...]  #: at least two package files that are installed together

    def probes(self) -> tuple[Probe, ...]:
        return tuple(dict.fromkeys(probe for one in self.files for probe in one.probes()))

    def plan(self, facts: Facts) -> Change | None:
        changes = {one.package: change for one in self.files if (change := one.plan(facts)) is not None}
        if not changes:
            return None
        names, artifacts = tuple(one.package for one in self.files), tuple(one.artifact for one in self.files)
        what, want = f"packages {' '.join(names)}", ", ".join(f"{one.package} {one.version}" for one in self.files)
        have = ", ".join(f"{name} {change.have}" for name, change in changes.items())
        hold = hold_script(names)
        if not any(change.artifacts for change in changes.values()):
            return Change(what, have, f"{want}, held", (Step(hold, lock=DPKG_LOCK),))
        paths = words(tuple(map(host_path, artifacts)))
        install = PATIENTLY + " dpkg --force-confdef --force-confold --install " + paths
        step = Step("\n".join([note_installed(names), install, hold]), lock=DPKG_LOCK)
        return Change(what, have, f"{want}, held", (step,), artifacts=tuple(one.name for one in artifacts))

    def software(self, facts: Facts) -> tuple[Software, ...]:
        return tuple(software for one in self.files for software in one.software(facts))

    def removal(self) -> tuple[Resource, ...]:
        return (DebsGone(tuple(one.package for one in self.files)),)
