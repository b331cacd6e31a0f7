"""A package from one of the stack's own files, for what no repository of the host carries at the right version."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.common.quoting import sh
from hostwright.plan.model import Change, Facts, Probe, Resource, Step
from hostwright.resources.files.paths import ABSENT
from hostwright.resources.originals import note_installed
from hostwright.resources.packages.debs_gone import DebsGone
from hostwright.resources.packages.packages import APT_GET, DPKG, DPKG_LOCK, MIRROR_TRIES, dpkg_table, hold_script
from hostwright.stack.stack import Artifact
from hostwright.stack.store.hostcache import host_path


@dataclass(frozen=True, slots=True)
class DebFile:
    """A package at exactly this version, installed from a ``.deb`` of the stack and held.

    ``unit`` is restarted when it is enabled: it would go on with the files that are no longer there. Whether it runs
    is a state of its own.
    """

    artifact: Artifact
    package: str
    version: str
    unit: str = ""

    def probes(self) -> tuple[Probe, ...]:
        return (DPKG,)

    def plan(self, facts: Facts) -> Change | None:
        row = dpkg_table(facts).get(self.package)
        right = row is not None and row.present and row.version == self.version
        hold = hold_script((self.package,))
        if row is not None and right and row.held:
            return None
        what, want = f"package {self.package}", f"{self.version}, held"
        if right:
            return Change(what, "not held", want, (Step(hold, lock=DPKG_LOCK),))
        flags = "--no-install-recommends --allow-downgrades --allow-change-held-packages"
        install = APT_GET + " " + flags + sh(" install %s", host_path(self.artifact))
        script = [note_installed((self.package,)), install, hold]
        if self.unit:
            restart = "if systemctl -q is-enabled %s 2>/dev/null; then systemctl restart %s || true; fi"
            script.append(sh(restart, self.unit, self.unit))
        have = row.version if row is not None and row.present else ABSENT
        step = Step("\n".join(script), lock=DPKG_LOCK, tries=MIRROR_TRIES)
        return Change(what, have, want, (step,), artifacts=(self.artifact.name,))

    def removal(self) -> tuple[Resource, ...]:
        return (DebsGone((self.package,)),)
