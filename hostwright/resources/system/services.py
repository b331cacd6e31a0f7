"""systemd services: enabled at boot, running now, with what their files say now; and what their changes disturb."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import ClassVar

from hostwright.common.quoting import sh, sh_file, words
from hostwright.plan.model import Change, Condition, Facts, Planned, Probe, Resource, ReturnState, Step
from hostwright.plan.roles.software import Software
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.originals import MARK, ORIGIN, changed, keep_unit
from hostwright.resources.system.services_gone import ServiceGone
from hostwright.resources.system.units import parse_show, show_probe, started

__all__ = ["Disturbing", "RestartedAfter", "Running", "Service", "parse_show"]


@dataclass(frozen=True, slots=True)
class Service(Resource):
    r"""A systemd unit is enabled at boot and active now, or disabled and stopped with ``running=False``.

    A unit that failed is started again. When the role is removed, it is stopped and disabled where it was so before;
    one that was to be stopped stays so.

    >>> answers = {"systemctl show": "LoadState=loaded\nActiveState=failed\nUnitFileState=enabled\n"}
    >>> print(plan_text(Service("metrics.service"), answers))
    ~ service metrics.service: failed, enabled → active, enabled
    """

    unit: str  #: with its ending: ``metrics.service``
    running: bool = True  #: ``False`` for a unit that must neither run nor start at boot

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
class RestartedAfter(Resource):
    r"""A unit that runs was started after its files were last changed, so that it works with what they say now.

    It is for units that read them only when they start. A restart is planned together with what is about to change the
    files (``inputs``); the step itself looks again and restarts only a unit that is older than its files, so that no
    restart is lost when a run is cut in between, and none is made for nothing. A unit that does not run stays so.
    A restart may hit those who use the unit: see ``Disturbing``. When the role is removed, the unit is restarted where
    ours was taken out of its files.

    >>> restarted = RestartedAfter("metrics.service", ("/etc/metrics.conf",))
    >>> print(plan_text(restarted, {"busctl": "/etc/metrics.conf\n"}))
    ~ restart of metrics.service: started before metrics.conf changed → started after its files
    """

    KIND: ClassVar = "restarted-after"
    #: what the plan calls the change; the unit when its files changed, and when they are about to; and afterwards
    WORDS: ClassVar = (
        "restart", "started before %s changed", "running with what is about to change", "started after its files",
    )  # fmt: skip

    unit: str  #: with its ending: ``metrics.service``
    files: tuple[str, ...]  #: paths of what it reads when it starts
    inputs: tuple[Resource, ...] = ()  #: the states that write these files

    def probes(self) -> tuple[Probe, ...]:
        kept = any(path.startswith(f"{ORIGIN}/") for path in self.files)  # which is for root alone
        own = Probe(self._newer() + self._ask(), root=kept, part=started(self.unit, self.files))
        return (own, *(probe for state in self.inputs for probe in state.probes()))

    def plan(self, facts: Facts) -> Change | None:
        newer = facts[self.probes()[0]].strip().splitlines()
        coming = [change.what for state in self.inputs if (change := state.plan(facts)) is not None]
        if not newer and not coming:
            return None
        what, older, soon, want = self.WORDS
        names = ", ".join(PurePosixPath(path).name.removesuffix(MARK) for path in newer)
        current = f'if [ -z "$({self._ask()})" ]; then exit 0; fi'
        script = "\n".join([self._newer() + current, *self._lines()])
        return Change(f"{what} of {self.unit}", older % names if newer else soon, want, (Step(script),))

    def removal(self) -> tuple[Resource, ...]:
        """The unit may outlive us, without the keys that we wrote into its files: then it is restarted.

        That we took them out a mark tells, and when. A file that changed without it is its admin's, who may have
        reasons not to restart. What a package brings into dpkg's own directory is no reason either. A unit whose own
        file is among ours is not restarted: it goes itself, and what it would start may be gone already.
        """
        if f"/etc/systemd/system/{self.unit}" in self.files:
            return ()
        marks = tuple(changed(path) for path in self.files if not path.startswith("/var/lib/dpkg/"))
        gone = tuple(gone for state in self.inputs for gone in state.removal())
        return (RestartedAfter(self.unit, marks, gone),)

    def _lines(self) -> tuple[str, ...]:
        """What brings the unit to work with what its files say now."""
        failed = sh("systemctl reset-failed -- %s 2>/dev/null || true", self.unit)
        return failed, sh("systemctl restart -- %s || { journalctl -u %s -n 30 --no-pager; exit 1; }", *[self.unit] * 2)

    def _newer(self) -> str:
        return sh_file(__file__, "sh/newer.sh", object=bus_path(self.unit))

    def _ask(self) -> str:
        return "newer " + words(self.files)


def bus_path(unit: str) -> str:
    """The unit's object on systemd's bus: what is no ASCII letter or digit is written as ``_`` and two hex digits."""
    escaped = "".join(char if char.isascii() and char.isalnum() else f"_{ord(char):02x}" for char in unit)
    return f"/org/freedesktop/systemd1/unit/{escaped}"


@dataclass(frozen=True, slots=True)
class Running(Condition):
    r"""The condition that a unit is active now, or on its way there or from there.

    A unit that failed or that systemd does not know does not run.

    >>> running = Running("metrics.service")
    >>> running.holds(facts_for(Service("metrics.service"), {"systemctl show": "ActiveState=activating\n"}))
    True
    """

    unit: str  #: with its ending: ``metrics.service``

    def probes(self) -> tuple[Probe, ...]:
        return (show_probe(self.unit),)

    def holds(self, facts: Facts) -> bool:
        """Whether it is so."""
        state = parse_show(facts[self.probes()[0]].text).get("ActiveState", "unknown")
        return state not in {"inactive", "failed", "unknown"}


@dataclass(frozen=True, slots=True)
class Disturbing(Resource):
    r"""Another state holds, and its change disturbs running work where a condition holds.

    Such a change waits for a host on which nothing runs, or for an operator who allows it. What stays when the role is
    removed is what the other state leaves, and taking that away disturbs likewise. What then comes back does not.

    >>> restarted = RestartedAfter("metrics.service", ("/etc/metrics.conf",))
    >>> careful = Disturbing(restarted, "interrupts the metrics", Running("metrics.service"))
    >>> print(plan_text(careful, {"busctl": "/etc/metrics.conf\n", "systemctl show": "ActiveState=active\n"}))
    ~ restart of metrics.service: started before metrics.conf changed → started after its files
      disturbs work: interrupts the metrics
    """

    resource: Resource  #: the other state
    what: str = field(metadata=NO_IDENTITY)  #: what its change does to running work, as in "restarts a service"
    #: where it does so; a condition may name those that it hits (``users``), as a resource does
    when: Condition = field(metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        return (*self.resource.probes(), *self.when.probes())

    def plan(self, facts: Facts) -> Planned | None:
        planned = self.resource.plan(facts)
        if not isinstance(planned, Change) or not self.when.holds(facts):
            return planned
        return replace(planned, disturbs=planned.disturbs or self.what)

    def users(self, facts: Facts) -> tuple[str, ...]:
        return (*self.resource.users(facts), *self.when.users(facts))

    def notes(self, facts: Facts) -> tuple[str, ...]:
        return self.resource.notes(facts)

    def losses(self, facts: Facts) -> tuple[str, ...]:
        return self.resource.losses(facts)

    def software(self, facts: Facts) -> tuple[Software, ...]:
        return self.resource.software(facts)

    def removal(self) -> tuple[Resource, ...]:
        states = self.resource.removal()
        return tuple(
            state if isinstance(state, ReturnState) else Disturbing(state, self.what, self.when) for state in states
        )

    def takes(self) -> frozenset[str]:
        return self.resource.takes()

    def sparing(self, wanted: Set[str], /) -> Disturbing | None:
        rest = self.resource.sparing(wanted)
        return replace(self, resource=rest) if rest else None
