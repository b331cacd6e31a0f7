"""The standard stacks, read with the sections of the standard roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hostwright.plan.roles.role import discover, in_order, rules_of, sections_of
from hostwright.stack import rules, stackfile
from hostwright.stack.fitting import Misfit
from hostwright.stack.stack import Stack
from tests.places import INVENTORY

STACKS = Path(__file__).parents[3] / "inventory" / "stacks"
KINDS = sections_of(discover())


def load_stack(name: str, search_dirs: Sequence[Path] = (STACKS,)) -> Stack:
    """Read a stack; stacks that it extends are searched only in these directories."""
    return stackfile.load_stack(name, search_dirs, KINDS)


#: all standard roles in the order of the standard stack
ROLES = in_order({role.name: role for role in discover()}, load_stack("tensorflow-2.9").roles)
RULES = rules_of(ROLES)


def for_all_roles() -> Stack:
    """A stack with a section for every role, each from the first of a few stacks that has it."""
    names = ("tensorflow-2.9-nccl-tensorrt", "pytorch-2.14", "jax-0.12")
    stacks = [load_stack(name, [INVENTORY / "stacks"]) for name in names]
    sections = {name: section for one in reversed(stacks) for name, section in one.sections.items()}
    return stacks[0].model_copy(update={"sections": sections})


def read_stack(data: Mapping[str, Any]) -> Stack:
    """Read a stack from plain data."""
    return stackfile.read_stack(data, KINDS)


def with_values(stack: Stack, **values: Mapping[str, Any]) -> Stack:
    """The stack with some values of sections replaced: ``with_values(STACK, driver={"version": "470.1"})``."""
    changed = {name: stack.sections[name].model_copy(update=dict(one)) for name, one in values.items()}
    return stack.model_copy(update={"sections": {**stack.sections, **changed}})


def check_stack(stack: Stack) -> list[Misfit]:
    """The misfits of the stack for a host with all standard roles."""
    return rules.check_stack(stack, RULES)


def check_host(stack: Stack, facts: rules.HostFacts) -> list[Misfit]:
    """The misfits of a host with all standard roles."""
    return rules.check_host(stack, facts, RULES)
