"""States of systemd units (enabled and active, restarted after changes), and changes that disturb running work."""

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
    r"""A systemd unit is enabled and active or, with ``running=False``, disabled and stopped.

    A failed unit is started again. When the role is removed, a unit that Hostwright enabled or started is disabled or
    stopped; a unit with ``running=False`` is left unchanged.

    >>> answers = {"systemctl show": "LoadState=loaded\nActiveState=failed\nUnitFileState=enabled\n"}
    >>> print(plan_text(Service("metrics.service"), answers))
    ~ service metrics.service: failed, enabled → active, enabled
    """

    unit: str  #: name of the unit with the suffix (``metrics.service``)
    running: bool = True  #: true if the unit must run now and start at boot, false if the unit must do neither

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
    r"""A running unit was started after the last change of its files, so that the unit uses the files' current content.

    Use it for units that read their files only at start. The restart is planned if ``inputs`` change the files or if
    the files are newer than the start. A stopped unit stays stopped. If a restart disturbs the users of the unit, wrap
    the state in ``Disturbing``. When the role is removed, the unit is restarted if Hostwright's part was removed from
    its files.

    >>> restarted = RestartedAfter("metrics.service", ("/etc/metrics.conf",))
    >>> print(plan_text(restarted, {"busctl": "/etc/metrics.conf\n"}))
    ~ restart of metrics.service: started before metrics.conf changed → started after its files
    """

    KIND: ClassVar = "restarted-after"
    #: texts in the plan for the change, the state after the files changed, the state before, and the wanted state
    WORDS: ClassVar = (
        "restart", "started before %s changed", "running with what is about to change", "started after its files",
    )  # fmt: skip

    unit: str  #: name of the unit with the suffix (``metrics.service``)
    files: tuple[str, ...]  #: paths of files that the unit reads when starting
    inputs: tuple[Resource, ...] = ()  #: states that write the files in ``files``

    def probes(self) -> tuple[Probe, ...]:
        kept = any(path.startswith(f"{ORIGIN}/") for path in self.files)  # only root can read below ORIGIN
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
        """Restart the unit if Hostwright's keys were removed from the unit's files after the unit's start
        (``changed(path)``).

        If the unit's own file is among ``files``, the unit is not restarted, because the unit is removed with the role.
        """
        if f"/etc/systemd/system/{self.unit}" in self.files:
            return ()
        marks = tuple(changed(path) for path in self.files if not path.startswith("/var/lib/dpkg/"))
        gone = tuple(gone for state in self.inputs for gone in state.removal())
        return (RestartedAfter(self.unit, marks, gone),)

    def _lines(self) -> tuple[str, ...]:
        failed = sh("systemctl reset-failed -- %s 2>/dev/null || true", self.unit)
        return failed, sh("systemctl restart -- %s || { journalctl -u %s -n 30 --no-pager; exit 1; }", *[self.unit] * 2)

    def _newer(self) -> str:
        return sh_file(__file__, "sh/newer.sh", object=bus_path(self.unit))

    def _ask(self) -> str:
        return "newer " + words(self.files)


def bus_path(unit: str) -> str:
    """D-Bus object path of a unit: each character except ASCII letters and digits becomes ``_`` and two hex digits."""
    escaped = "".join(char if char.isascii() and char.isalnum() else f"_{ord(char):02x}" for char in unit)
    return f"/org/freedesktop/systemd1/unit/{escaped}"


@dataclass(frozen=True, slots=True)
class Running(Condition):
    r"""A condition that holds while a unit is active, or is starting, stopping or reloading.

    >>> running = Running("metrics.service")
    >>> running.holds(facts_for(Service("metrics.service"), {"systemctl show": "ActiveState=activating\n"}))
    True
    """

    unit: str  #: name of the unit with the suffix (``metrics.service``)

    def probes(self) -> tuple[Probe, ...]:
        return (show_probe(self.unit),)

    def holds(self, facts: Facts) -> bool:
        state = parse_show(facts[self.probes()[0]].text).get("ActiveState", "unknown")
        return state not in {"inactive", "failed", "unknown"}


@dataclass(frozen=True, slots=True)
class Disturbing(Resource):
    r"""The change to the state ``resource`` counts as disturbing running work if a condition holds.

    A disturbing change waits until the host is idle, or until an operator allows it. When the role is removed, the
    removal of ``resource`` counts as disturbing too, but the restoration of a former state does not.

    >>> restarted = RestartedAfter("metrics.service", ("/etc/metrics.conf",))
    >>> careful = Disturbing(restarted, "interrupts the metrics", Running("metrics.service"))
    >>> print(plan_text(careful, {"busctl": "/etc/metrics.conf\n", "systemctl show": "ActiveState=active\n"}))
    ~ restart of metrics.service: started before metrics.conf changed → started after its files
      disturbs work: interrupts the metrics
    """

    resource: Resource  #: state whose change disturbs work
    what: str = field(metadata=NO_IDENTITY)  #: effect of the change on running work, such as "restarts a service"
    #: condition that holds while the change of ``resource`` would disturb work
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
