"""systemd services: enabled at boot, running now, with what their files say now; and what their changes disturb."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import ClassVar

from hostwright.common.quoting import sh, sh_file, words
from hostwright.plan.model import Change, Facts, Planned, Probe, Resource, Step, users_of
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.conditions import Condition
from hostwright.resources.originals import MARK, ORIGIN, changed, keep_unit
from hostwright.resources.system.services_gone import ServiceGone
from hostwright.resources.system.units import parse_show, show_probe

__all__ = ["Disturbing", "RestartedAfter", "Running", "Service", "parse_show"]


@dataclass(frozen=True, slots=True)
class Service:
    """A unit that is enabled and active (or, with ``running=False``, disabled and stopped)."""

    unit: str
    running: bool = True

    def probes(self) -> tuple[Probe, ...]:
        return (show_probe(self.unit),)

    def plan(self, facts: Facts) -> Change | None:
        shown = parse_show(facts[self.probes()[0]].text)
        active = shown.get("ActiveState", "unknown")
        enabled = shown.get("UnitFileState") or shown.get("LoadState", "unknown")
        if self.running:
            if active == "active" and enabled in {"enabled", "static", "alias", "generated"}:
                return None
            script = sh("systemctl reset-failed %s 2>/dev/null || true\nsystemctl enable --now -- %s", *[self.unit] * 2)
            step = Step(f"{keep_unit(self.unit)}\n{script}")
            return Change(f"service {self.unit}", f"{active}, {enabled}", "active, enabled", (step,))
        if active in {"inactive", "failed", "unknown"} and enabled in {"disabled", "masked", "not-found", "static"}:
            return None
        script = sh("systemctl disable --now -- %s", self.unit)
        return Change(f"service {self.unit}", f"{active}, {enabled}", "inactive, disabled", (Step(script),))

    def removal(self) -> tuple[Resource, ...]:
        return (ServiceGone(self.unit),) if self.running else ()


@dataclass(frozen=True, slots=True)
class RestartedAfter:
    """A running unit that was started after all of these files were last changed: what it reads only when it starts.

    ``inputs`` are the resources that write the files. When one of them is about to change something, the restart is
    planned with it; the step itself looks again and restarts only what is then older than its files, so that neither a
    restart is lost when a run was cut in between, nor is one made for nothing.
    """

    KIND: ClassVar = "restarted-after"

    unit: str
    files: tuple[str, ...]
    inputs: tuple[Resource, ...] = ()

    def probes(self) -> tuple[Probe, ...]:
        kept = any(path.startswith(f"{ORIGIN}/") for path in self.files)  # which is for root alone
        own = Probe(self._newer() + self._ask(), root=kept)
        return (own, *(probe for one in self.inputs for probe in one.probes()))

    def plan(self, facts: Facts) -> Change | None:
        newer = facts[self.probes()[0]].strip().splitlines()
        coming = [change.what for one in self.inputs if (change := one.plan(facts)) is not None]
        if not newer and not coming:
            return None
        names = ", ".join(PurePosixPath(path).name.removesuffix(MARK) for path in newer)
        have = f"started before {names} changed" if newer else "running with what is about to change"
        script = "\n".join(
            [
                self._newer() + 'if [ -z "$(' + self._ask() + ')" ]; then exit 0; fi',
                sh("systemctl reset-failed -- %s 2>/dev/null || true", self.unit),
                sh("systemctl restart -- %s || { journalctl -u %s -n 30 --no-pager; exit 1; }", self.unit, self.unit),
            ]
        )
        return Change(f"restart of {self.unit}", have, "started after its files", (Step(script),))

    def removal(self) -> tuple[Resource, ...]:
        """The unit may outlive us, without the keys that we wrote into its files: then it is started anew.

        That we took them out a mark tells, and when. A file that changed without it is its admin's, who may have his
        reasons not to restart. What a package brings into dpkg's own directory is no reason either. A unit whose own
        file is among ours is not started anew: it goes itself, and what it would start may be gone already.
        """
        if f"/etc/systemd/system/{self.unit}" in self.files:
            return ()
        marks = tuple(changed(path) for path in self.files if not path.startswith("/var/lib/dpkg/"))
        gone = tuple(state for one in self.inputs for state in one.removal())
        return (RestartedAfter(self.unit, marks, gone),)

    def _newer(self) -> str:
        return sh_file(__file__, "sh/newer.sh", object=_bus_path(self.unit))

    def _ask(self) -> str:
        return "newer " + words(self.files)


def _bus_path(unit: str) -> str:
    """The unit's object on systemd's bus: what is no ASCII letter or digit is written as ``_`` and two hex digits."""
    escaped = "".join(char if char.isascii() and char.isalnum() else f"_{ord(char):02x}" for char in unit)
    return f"/org/freedesktop/systemd1/unit/{escaped}"


@dataclass(frozen=True, slots=True)
class Running:
    """The condition that a unit is active now, or on its way there or from there."""

    unit: str

    def probes(self) -> tuple[Probe, ...]:
        return (show_probe(self.unit),)

    def holds(self, facts: Facts) -> bool:
        """Whether it is so."""
        state = parse_show(facts[self.probes()[0]].text).get("ActiveState", "unknown")
        return state not in {"inactive", "failed", "unknown"}


@dataclass(frozen=True, slots=True)
class Disturbing:
    """A resource whose change does ``what`` to running work ("restarts a service") where a condition holds.

    What is not a change yet disturbs nobody yet.
    """

    resource: Resource
    what: str = field(metadata=NO_IDENTITY)
    when: Condition = field(metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        return (*self.resource.probes(), *self.when.probes())

    def plan(self, facts: Facts) -> Planned | None:
        planned = self.resource.plan(facts)
        if not isinstance(planned, Change) or not self.when.holds(facts):
            return planned
        return replace(planned, disturbs=planned.disturbs or self.what)

    def users(self, facts: Facts) -> tuple[str, ...]:
        return users_of(self.resource, facts)

    def removal(self) -> tuple[Resource, ...]:
        return tuple(Disturbing(state, self.what, self.when) for state in self.resource.removal())
