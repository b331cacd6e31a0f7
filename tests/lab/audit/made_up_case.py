"""Cases with changed answers, and replacement of a clean host's answers, one by one or its whole kernel log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from hostwright.audit.hardware.known import NOTHING_KNOWN, KnownHardware
from hostwright.inventory.model import Origin, Value
from hostwright.plan.facts.expected import GPUS
from hostwright.plan.model import Answer, Facts, Probe
from hostwright.plan.targets import TargetHost
from hostwright.standard.roles.base.failures.host import CLOCK
from hostwright.standard.roles.driver.failures.state import BOOTED
from hostwright.standard.roles.driver.xids.kernellog import KERNEL_LOG

Answers = Mapping[Probe, Answer]
Change = Callable[[Facts], Answers]
Line = tuple[float, str]  #: line of the kernel log: (hours ago, text)

BOOT_H = 30.0  #: default age of the loaded module, in hours
LOADING = "nvidia-nvlink: Nvlink Core is being initialized, major device number 234"


@dataclass(frozen=True)
class MadeUp:
    """One fault that no lab host can have; ``change`` returns the answers that differ from the clean host's.

    ``rules`` are exactly the failures that must be reported; none for a healthy host that looks unusual. ``unread`` are
    rules that cannot be evaluated, which differs from a pass. ``roles`` are additional roles of the host. ``known`` are
    facts about its hardware from the inventory and earlier audits.
    """

    name: str
    change: Change
    rules: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()
    roles: tuple[str, ...] = ()
    known: KnownHardware = NOTHING_KNOWN

    def facts(self, clean: Facts) -> Facts:
        """Return the clean host's facts with this case's answers, and with a kernel log, which a lab host lacks."""
        return merged(clean, log(), self.change)

    def target(self, clean: TargetHost) -> TargetHost:
        """Return the clean host with this case's roles, without variables for them, and with its number of GPUs."""
        further = tuple(role for role in clean.all_roles if role.name in self.roles)
        variables = {role.name: role.variables() for role in further}
        roles = (*clean.roles, *further)
        gpus = Value(self.known.gpus, Origin("hosts.yml", 1, 1), "host")
        host = replace(clean.host, vars={**clean.host.vars, GPUS: gpus})
        return replace(clean, host=host, roles=roles, of_host=roles, variables={**clean.variables, **variables})


def made_up(
    name: str,
    change: Change,
    rules: str = "",
    unread: str = "",
    roles: str = "",
    *,
    known: KnownHardware = NOTHING_KNOWN,
) -> MadeUp:
    """Return a case; ``rules``, ``unread`` and ``roles`` are names separated by spaces."""
    return MadeUp(name, change, frozenset(rules.split()), frozenset(unread.split()), tuple(roles.split()), known)


def merged(facts: Facts, *changes: Change) -> Facts:
    """Return the facts with these changes; each change receives the result of the previous ones."""
    for change in changes:
        facts = Facts({**facts, **change(facts)})
    return facts


def together(*changes: Change) -> Change:
    """Combine several changes."""
    return lambda clean: merged(clean, *changes)


def says(probe: Probe, text: str = "", status: int = 0) -> Change:
    """Set the host's answer to this probe."""
    return lambda _: {probe: Answer(status, text)}


def log(*lines: Line, boot_h: float = BOOT_H, journal: bool = True) -> Change:
    """Set the kernel log of a host that booted ``boot_h`` hours ago, in the journal or rsyslog's file."""

    def change(facts: Facts) -> Answers:
        now = datetime.fromtimestamp(int(facts[CLOCK].strip()), UTC)
        form = "%Y-%m-%dT%H:%M:%S+0000" if journal else "%b %d %H:%M:%S"
        told = sorted([(boot_h, LOADING), *lines], key=lambda line: -line[0])
        rows = [f"{now - timedelta(hours=hours):{form}} gpu01 kernel: {words}" for hours, words in told]
        text = "\n".join(["+0000", f"source {'journal' if journal else 'file'}", *rows, ""])
        booted = int((now - timedelta(hours=boot_h, seconds=20)).timestamp())
        return {KERNEL_LOG: Answer(0, text), BOOTED: Answer(0, f"{booted}\n")}

    return change


def xid(number: int, hours: float, words: str = "pid=4711, name=python3", bus: str = "0000:3b:00") -> Line:
    """Return the log line of an Xid."""
    return hours, f"NVRM: Xid (PCI:{bus}): {number}, {words}"
