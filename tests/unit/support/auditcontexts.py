"""Audit contexts of a host with the real roles base and container: as desired, except for a test's answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from hostwright.audit.failures.logs import LAST_JOBS
from hostwright.audit.judging.context import AuditContext
from hostwright.plan.desired import Desired
from hostwright.plan.host import jobs
from hostwright.plan.host.hostfacts import PCI
from hostwright.plan.host.newrelease import renewed
from hostwright.plan.host.release import RELEASE, RunStamp
from hostwright.plan.model import Answer, Facts, Probe
from hostwright.plan.roles.role import RoleContext
from hostwright.plan.roles.wants import desire
from hostwright.resources.packages.packages import DPKG
from hostwright.standard.roles.base import Base, base
from hostwright.standard.roles.base.failures import apt, disks, host
from hostwright.standard.roles.base.failures.journal import JOURNAL
from hostwright.standard.roles.container import Container, container
from hostwright.standard.roles.container.engine import LINKS_UNIT
from hostwright.standard.roles.container.failures.docker import HOOK_THERE
from hostwright.standard.roles.container.failures.state import COMMAND, CONTEXT, INFO
from hostwright.standard.roles.container.failures.toolkit import NO_CGROUPS, REACHES_DRIVER
from hostwright.standard.roles.container.failures.units import DOCKER, SOCKET, UNITS
from hostwright.standard.roles.driver.failures.units import PERSISTENCED
from hostwright.standard.roles.driver.failures.units import UNITS as DAEMONS
from hostwright.standard.roles.driver.states.fabric import FABRIC_MANAGER
from tests.unit.roles import test_role_base, test_role_container
from tests.unit.support.facts import Reply, answer, facts_for
from tests.unit.support.known import BY_NAME, CARD_PROBES, CARDS, KNOWN, SIGNED

STACK = test_role_container.STACK
NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
DESIRED = desire("gpu01", RoleContext(STACK), [(base, Base()), (container, Container())])
LAYERS = ("base", "driver", "container", "gpu")

Differs = Mapping[Probe, Reply | None]


def show(
    name: str, active: str = "active", sub: str = "running", *, load: str = "loaded", result: str = "success"
) -> str:
    """The output of ``systemctl show`` for one unit."""
    return f"Id={name}\nLoadState={load}\nActiveState={active}\nSubState={sub}\nResult={result}\n"


def shown(**differs: str) -> str:
    """The output of ``systemctl show`` for all units of the stack; ``differs`` replaces texts of units, by a word of
    the unit's name.
    """
    words = {"docker": 0, "containerd": 1, "persistenced": 2, "fabricmanager": 3, "dev_char": 4}
    texts = [show(name) for name in (*DOCKER, PERSISTENCED, FABRIC_MANAGER, LINKS_UNIT, SOCKET)]
    for word, text in differs.items():
        texts[words[word]] = text
    return "\n".join(texts)


def df(*rows: tuple[str, int, int]) -> str:
    """The output of ``df``: mount point, size and free space, in the requested unit."""
    head = "Filesystem 1024-blocks Used Available Capacity Mounted on\n"
    return head + "".join(f"/dev/sda1 {size} {size - free} {free} 5% {mount}\n" for mount, size, free in rows)


ROOMY = (("/", 100_000_000, 50_000_000), ("/boot", 500_000, 200_000))
FREE = f"{df(*ROOMY)}inodes\n{df(*ROOMY)}"
EXEC = (
    "ExecStart={ path=/usr/sbin/dockerd ; argv[]=/usr/sbin/dockerd -H fd:// $DOCKER_OPTS ; ignore_errors=no ; pid=0 }\n"
    "FragmentPath=/lib/systemd/system/docker.service\nDropInPaths=/etc/systemd/system/docker.service.d/a.conf\n"
)


def _record(desired: Desired) -> str:
    return json.dumps(renewed(desired, {}, RunStamp("run-1", "ada@desk", "2026-11-20T10:00:00+00:00")))


def healthy() -> dict[Probe, Answer]:
    """All answers of a host that is as desired."""
    found: dict[Probe, Answer] = dict(test_role_base.host(DESIRED.roles[0].resources))
    found |= facts_for(DESIRED.roles[1].resources, test_role_container.GREEN)
    asked = [probe for rule in SIGNED if rule.sign for probe in rule.sign.probes]
    found = {probe: Answer(0, "") for probe in (*asked, *CARD_PROBES)} | found
    replies: dict[Probe, Reply] = {
        DPKG: test_role_base.PROVISIONED + test_role_container.DPKG,
        RELEASE: _record(DESIRED),
        jobs.RUNNING: "",
        PCI: "0x10de 0x030200 0x1eb8\n",
        INFO: "runtime io.containerd.runc.v2\nruntime nvidia\nruntime runc\ncgroup systemd\n",
        COMMAND: EXEC,
        HOOK_THERE: "/usr/bin/nvidia-container-runtime-hook\n",
        CONTEXT: "",
        NO_CGROUPS: "",
        REACHES_DRIVER: "NVRM version:   470.182.03\n",
        UNITS.states: shown(),
        DAEMONS.states: shown(),
        disks.FREE: FREE,
        disks.LEFT_BEHIND: "900000\t/var/cache/hostwright/artifacts\n",
        disks.MOUNTS: "mount /snap/core/1 squashfs ro,nodev\nfstab / errors=remount-ro\n",
        JOURNAL: "",
        apt.HELD: "",
        apt.RELEASES: "",
        host.CLOCK: f"{NOW.timestamp():.0f}\n",
        LAST_JOBS: "",
    }
    return found | {probe: answer(reply) for probe, reply in replies.items()}


def look_at(differs: Differs | None = None, *, desired: Desired = DESIRED) -> AuditContext:
    """The audit context of a host that is as desired except for these answers; ``None``: a probe that did not run."""
    given = healthy()
    for probe, reply in (differs or {}).items():
        if reply is None:
            given.pop(probe, None)
        else:
            given[probe] = answer(reply)
    facts = Facts(given)
    changes = {
        role.name: tuple(change for one in role.resources if _asked(one, facts) and (change := one.plan(facts)))
        for role in desired.roles
    }
    return AuditContext(desired, {}, facts, changes, NOW, CARDS, KNOWN.named)


def _asked(resource: object, facts: Facts) -> bool:
    return all(probe in facts for probe in resource.probes())  # type: ignore[attr-defined]


def evidence(name: str, differs: Differs | None = None) -> list[str]:
    """The evidence for a rule on such a host. Raises ``Unread``."""
    return KNOWN.evidence(BY_NAME[name], look_at(differs))
