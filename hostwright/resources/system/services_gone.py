"""States for the removal of a role: services and accounts are as they were before Hostwright's first change."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.common.quoting import sh
from hostwright.plan.model import Change, Facts, Probe, RemovalState, Step
from hostwright.resources.files.paths import ABSENT
from hostwright.resources.originals import ACCOUNTS_BEFORE, RECORDED, unit_before
from hostwright.resources.system.units import parse_show

_ENABLED = {"enabled", "enabled-runtime"}
_RUNS = {"active", "activating", "reloading"}


@dataclass(frozen=True, slots=True)
class ServiceGone(RemovalState):
    """A unit that Hostwright enabled or started is disabled or stopped again.

    Without a record of its former state, a unit in ``/etc/systemd/system`` is disabled and stopped, and a unit of a
    package is left unchanged.
    """

    unit: str  #: name of the unit with the suffix (``chrony.service``)

    def probes(self) -> tuple[Probe, ...]:
        show = sh("systemctl show -p LoadState,ActiveState,UnitFileState,FragmentPath -- %s", self.unit)
        return (RECORDED, Probe(sh("cat -- %s", unit_before(self.unit)), root=True), Probe(show))

    def plan(self, facts: Facts) -> Change | None:
        recorded, noted, show = (facts[probe] for probe in self.probes())
        now = parse_show(show.text)
        local = now.get("FragmentPath", "").startswith("/etc/systemd/system/")
        if not noted.ok and (recorded.ok or not local):
            return None
        before = parse_show(noted.text) if noted.ok else {}
        stop = now.get("ActiveState") in _RUNS and before.get("ActiveState") not in _RUNS
        disable = now.get("UnitFileState") in _ENABLED and before.get("UnitFileState") not in _ENABLED
        if not stop and not disable:
            return None
        # `systemctl disable` reloads systemd, so the script needs no daemon-reload
        script = [sh("systemctl disable -- %s", self.unit)] if disable else []
        script += [sh("systemctl stop -- %s", self.unit)] if stop else []
        have = f"{now.get('ActiveState', 'unknown')}, {now.get('UnitFileState', 'unknown')}"
        want = ", ".join([*(["stopped"] if stop else []), *(["disabled"] if disable else [])])
        return Change(f"service {self.unit}", have, f"as before: {want}", (Step("\n".join(script)),))

    def takes(self) -> frozenset[str]:
        return frozenset({f"unit {self.unit}"})


@dataclass(frozen=True, slots=True)
class UserGone(RemovalState):
    """An account and the group of the same name are removed, unless they existed before Hostwright's first change.

    Without a record of the original state they are kept.
    """

    name: str  #: name of the account and of the account's group

    def probes(self) -> tuple[Probe, ...]:
        script = "getent passwd -- %s >/dev/null && echo user; getent group -- %s >/dev/null && echo group; exit 0"
        return (ACCOUNTS_BEFORE, Probe(sh(script, self.name, self.name)))

    def plan(self, facts: Facts) -> Change | None:
        before, now = (facts[probe] for probe in self.probes())
        if not before.ok or before.truncated:
            return None
        old = set(before.text.splitlines())
        kinds = [kind for kind in ("user", "group") if kind in now.text.split() and f"{kind} {self.name}" not in old]
        if not kinds:
            return None
        script = [sh("userdel -- %s", self.name)] if "user" in kinds else []
        if "group" in kinds:  # `userdel` removes this group only if the group has no other members
            script.append(sh("if getent group -- %s >/dev/null; then groupdel -- %s; fi", self.name, self.name))
        have = " and ".join(kinds)
        return Change(f"user {self.name}", have, f"as before: {ABSENT}", (Step("\n".join(script)),))

    def takes(self) -> frozenset[str]:
        return frozenset({f"account {self.name}"})
