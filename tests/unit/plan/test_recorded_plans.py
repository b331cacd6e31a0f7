"""Tests that plans of made-up hosts match those recorded before rules and sections belonged to roles.

For the first host, the whole plan was recorded; for the others, the layers that differed from it. The state that
excludes other drivers moved from the role base to driver: both are compared as one. Recorded are the name of each
change, the values before and after, and the sentence of each refusal.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hostwright.plan.host.hostfacts import AVX, MEMORY, OS_RELEASE, PCI, PYTHONS, UNAME
from hostwright.plan.model import Answer, Facts, Planned, Probe, Refusal
from hostwright.plan.planning import make_plan
from hostwright.plan.roles.role import RoleContext
from hostwright.plan.roles.wants import desire
from tests.unit.support.stacks import ROLES, load_stack

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "fixtures/plans-before-roles.json").read_text("utf-8")
)


def answers(host: dict[str, Any]) -> dict[Probe, Answer]:
    """The answers of a host."""
    name, version = host.get("os", ("ubuntu", "20.04"))
    cards, pythons = host.get("pci", ["0x10de 0x030200 0x1eb8"]), host.get("pythons", ["3.8"])
    return {
        OS_RELEASE: Answer(0, f'ID={name}\nVERSION_ID="{version}"\nVERSION_CODENAME=x\n'),
        UNAME: Answer(0, f"{host.get('kernel', '5.15.0-91-generic')} {host.get('machine', 'x86_64')}\n"),
        PCI: Answer(0, "".join(f"{row}\n" for row in cards)),
        AVX: Answer(0 if host.get("avx", True) else 1, ""),
        PYTHONS: Answer(0, "".join(f"/usr/bin/python{one} {one}\n" for one in pythons)),
        MEMORY: Answer(0, f"{host.get('memory', 64_000_000)}\n"),
    }


def said(change: Planned) -> str:
    """A change on one line."""
    if isinstance(change, Refusal):
        return change.sentence
    return f"{change.what}: {getattr(change, 'have', '')} -> {getattr(change, 'want', '')}"


@pytest.mark.parametrize("name", RECORDED)
def test_a_host_s_plan_is_the_recorded_one(name: str) -> None:
    scene, stack = RECORDED[name], load_stack(RECORDED[name]["stack"])
    roles = [(role, role.variables()) for role in ROLES if role.name in stack.roles]
    desired = desire("gpu01", RoleContext(stack), roles)
    known = answers(scene["host"])
    facts = Facts({probe: known.get(probe, Answer(scene["status"], "")) for probe in desired.probes()})
    plan = {role.role: role.changes for role in make_plan(desired, facts).roles}
    wanted = {**RECORDED["bare"]["plan"], **scene["plan"]}
    found = {
        group: sorted(said(change) for role in group.split("+") for change in plan.get(role, ())) for group in wanted
    }
    assert found == wanted
