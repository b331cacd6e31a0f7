"""What a made-up case is, and how answers of a clean host are replaced: one by one, or its whole kernel log."""

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
Line = tuple[float, str]  #: of the kernel log: how many hours ago, and its words

BOOT_H = 30.0  #: when the module was loaded, unless a case says otherwise
LOADING = "nvidia-nvlink: Nvlink Core is being initialized, major device number 234"


@dataclass(frozen=True)
class MadeUp:
    """One thing that no lab host can have; ``change`` gives the answers that are other than on the clean host.

    ``rules`` are the failures that must be recognised, and no others; none: the host is well, however it may look.
    ``unread`` are those that cannot be told then, which is not the same as well. ``roles`` are those that the host has
    beside the clean host's. ``known`` is what the inventory and earlier audits say about its hardware.
    """

    name: str
    change: Change
    rules: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()
    roles: tuple[str, ...] = ()
    known: KnownHardware = NOTHING_KNOWN

    def facts(self, clean: Facts) -> Facts:
        """The facts of the clean host, which has no kernel log and gets one, with this case's answers."""
        return merged(clean, log(), self.change)

    def target(self, clean: TargetHost) -> TargetHost:
        """The clean host with this case's further roles, for which nothing is declared, and its number of GPUs."""
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
    """A case; ``rules``, ``unread`` and ``roles`` are names with spaces between."""
    return MadeUp(name, change, frozenset(rules.split()), frozenset(unread.split()), tuple(roles.split()), known)


def merged(facts: Facts, *changes: Change) -> Facts:
    """The facts with these changes, each of which sees what those before it gave."""
    for change in changes:
        facts = Facts({**facts, **change(facts)})
    return facts


def together(*changes: Change) -> Change:
    """Several changes as one."""
    return lambda clean: merged(clean, *changes)


def says(probe: Probe, text: str = "", status: int = 0) -> Change:
    """The host answers this question so."""
    return lambda _: {probe: Answer(status, text)}


def log(*lines: Line, boot_h: float = BOOT_H, journal: bool = True) -> Change:
    """The kernel log of a host that booted and loaded the module ``boot_h`` hours ago; journal or rsyslog's file."""

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
    """An Xid's line."""
    return hours, f"NVRM: Xid (PCI:{bus}): {number}, {words}"
