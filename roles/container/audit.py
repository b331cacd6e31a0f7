"""Values of Docker and of the NVIDIA container toolkit that audits compare."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.roles import (
    DISTRIBUTION,
    AuditValue,
    PackageHold,
    PackageOf,
    PackageVersion,
    RoleContext,
    Snippet,
    UnitProperty,
    sh_file,
)
from hostwright.standard.roles.container import DOCKER, Container
from hostwright.standard.roles.container.engine import FIREWALL_SH
from hostwright.standard.roles.container.section import ContainerSection

SETTINGS = Snippet.beside(__file__, "audit.sh", "container")
INFO = Snippet("docker", FIREWALL_SH + sh_file(__file__, "sh/audit_root.sh"), root=True)

FAMILIES = ("nvidia-*", "libnvidia-*")


def audit_values(v: Container, ctx: RoleContext) -> Iterator[AuditValue]:
    """Yield versions of Docker and the toolkit, holds of the toolkit's packages, and Docker's state and settings."""
    wanted = ctx.section(ContainerSection).toolkit
    yield AuditValue("docker", PackageOf(("docker.io", "docker-ce"), named=True), among=DISTRIBUTION)
    yield AuditValue("docker service", UnitProperty(DOCKER), "active")
    for name in wanted.packages:
        yield AuditValue(name, PackageVersion(name, FAMILIES), wanted.version)
        yield AuditValue(f"{name} hold", PackageHold(name, FAMILIES), "held")
    yield AuditValue("nvidia runtime", SETTINGS.line("nvidia runtime"), "yes")
    yield AuditValue("default runtime", INFO.line("default runtime"), among=DISTRIBUTION)
    yield AuditValue("cgroup driver", INFO.line("cgroup driver"), among=DISTRIBUTION)
    # A stopped Docker reports no firewall rules, so ``derive`` excludes an empty text from the comparison.
    yield AuditValue("firewall rules", INFO.line("firewall rules"), "there", derive=lambda text: text or None)
