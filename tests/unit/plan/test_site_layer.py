"""Tests of a versioned layer in a site that Hostwright does not contain: all its parts are in one folder."""

from __future__ import annotations

from pathlib import Path

from hostwright.audit.failures.catalogue import catalogue
from hostwright.plan.roles.site import Site
from hostwright.plan.targets import Roster

FILES = {
    "tasks.py": "",
    "inventory/hosts.yml": "all: {hosts: {gpu01: {stack: ours, hostwright_roles: [base, driver, cuda, nccl]}}}\n",
    "inventory/stacks/ours.yml": "extends: tensorflow-2.9\ndescription: with NCCL\nnccl: {version: 2.8.4}\n",
    "roles/nccl/__init__.py": """\
from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.plan.model import Resource
from hostwright.plan.roles.role import RoleContext, role
from hostwright.resources.files.files import File

from .section import NcclSection


@dataclass(frozen=True, slots=True)
class Nccl:
    prefix: str = "/opt/nccl"


@role(needs=["cuda"])
def nccl(v: Nccl, ctx: RoleContext) -> Iterator[Resource]:
    \"\"\"NCCL, beside the toolkit.\"\"\"
    yield File(f"{v.prefix}/version", ctx.section(NcclSection).version)
""",
    "roles/nccl/section.py": """\
from collections.abc import Mapping

from hostwright.stack.stack import Section
from hostwright.stack.stackvalues import ExactVersion


class NcclSection(Section):
    version: ExactVersion

    def versions(self) -> Mapping[str, str]:
        return {"nccl": self.version}
""",
    "roles/nccl/audit.py": """\
from collections.abc import Iterator

from hostwright.plan.roles.auditvalue import AuditValue, FileLine
from hostwright.plan.roles.role import RoleContext

from . import Nccl
from .section import NcclSection


def audit_values(v: Nccl, ctx: RoleContext) -> Iterator[AuditValue]:
    yield AuditValue("version", FileLine(f"{v.prefix}/version"), ctx.section(NcclSection).version)
""",
    "roles/nccl/failures.py": """\
from hostwright.audit.failures import FailureRule

FAILURES = (FailureRule("nccl-shm", "NCCL WARN .* shm", "NCCL has no shared memory", "give it some", "its manual"),)
""",
}


def test_a_layer_of_a_site_brings_section_versions_values_and_failures(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (target,) = Roster.load(site=Site(tmp_path)).targets("gpu01")
    assert target.stack.versions()["nccl"] == "2.8.4"
    assert [str(one) for one in target.desired.roles if one.name == "nccl"]
    assert {one.name: one.want for one in target.audit_values if one.layer == "nccl"} == {"version": "2.8.4"}
    failure = catalogue(target.all_roles).classify("NCCL WARN no shm")
    assert failure is not None
    assert failure.cause == "NCCL has no shared memory"
