"""Kernels and their headers as they were before."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.common.quoting import words
from hostwright.plan.model import Change, Facts, Probe, RemovalState, Step
from hostwright.resources.packages.debs_gone import Database, DebsGone
from hostwright.resources.packages.dpkg import DPKG_LOCK, MIRROR_TRIES, PATIENTLY, mend_cut_script
from hostwright.resources.packages.packages import named_like

#: Images and headers: versioned packages, and the meta packages that bring newer ones.
HEADERS_NAME = "linux-headers-"
KERNEL_PACKAGES = ("linux-image-*", "linux-headers-*", "linux-generic*")


@dataclass(frozen=True, slots=True)
class KernelsAsBefore(RemovalState):
    """No kernel package is held that was not before, and new headers are gone, unless others need them.

    Kernels themselves are never removed, whoever installed them. If the original state was not recorded, everything
    stays.
    """

    def probes(self) -> tuple[Probe, ...]:
        return DebsGone(()).probes()

    def plan(self, facts: Facts) -> Change | None:
        db = Database(facts)
        if db.before is None:
            return None
        kernels = sorted(name for name in db.present if named_like(name, KERNEL_PACKAGES))
        headers = tuple(name for name in kernels if name.startswith(HEADERS_NAME) and not db.was_there(name))
        gone = DebsGone(headers, label="kernel").plan(facts)
        unheld = tuple(name for name in kernels if db.became_held(name) and name not in headers)
        have = [gone.have] if gone is not None else []
        want = [gone.want] if gone is not None else []
        steps = gone.steps if gone is not None else ()
        if unheld:
            have += [f"{name} held" for name in unheld]
            want += ["no kernel package held that was not"]
            unhold = mend_cut_script() + "\n" + PATIENTLY + " apt-mark unhold " + words(unheld)
            steps = (Step(unhold, DPKG_LOCK, timeout_s=1800, tries=MIRROR_TRIES), *steps)
        return Change("kernel packages", ", ".join(have), "; ".join(want), steps) if steps else None
