"""Services that are off again, and accounts that are gone again, as they were before the first change."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.common.quoting import sh
from hostwright.plan.model import Change, Facts, Probe, Resource, Step
from hostwright.resources.files.paths import ABSENT
from hostwright.resources.originals import ACCOUNTS_BEFORE, RECORDED, unit_before
from hostwright.resources.system.units import parse_show

_ENABLED = {"enabled", "enabled-runtime"}
_RUNS = {"active", "activating", "reloading"}


@dataclass(frozen=True, slots=True)
class ServiceGone:
    """A unit that we switched on is off again, at boot and now, as it was.

    How it was is written down when it is switched on. Without a record, one whose file lies in ``/etc/systemd/system``
    is ours; one of a package is the package's concern.
    """

    unit: str

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
        # ``disable`` also reloads systemd, so it is left out for a unit that was enabled before or is not enabled now.
        script = [sh("systemctl disable -- %s", self.unit)] if disable else []
        script += [sh("systemctl stop -- %s", self.unit)] if stop else []
        have = f"{now.get('ActiveState', 'unknown')}, {now.get('UnitFileState', 'unknown')}"
        want = ", ".join([*(["stopped"] if stop else []), *(["disabled"] if disable else [])])
        return Change(f"service {self.unit}", have, f"as before: {want}", (Step("\n".join(script)),))

    def removal(self) -> tuple[Resource, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class UserGone:
    """An account and the group of its name that were not there before the first change are gone.

    Without a record of before nobody knows whose the account is: it stays.
    """

    name: str

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
        if "group" in kinds:  # userdel takes a group of the same name along where nobody else is in it
            script.append(sh("if getent group -- %s >/dev/null; then groupdel -- %s; fi", self.name, self.name))
        have = " and ".join(kinds)
        return Change(f"user {self.name}", have, f"as before: {ABSENT}", (Step("\n".join(script)),))

    def removal(self) -> tuple[Resource, ...]:
        return ()
