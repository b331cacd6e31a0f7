"""The standard stacks, read with the sections of the standard roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hostwright.plan.role import discover, sections_of
from hostwright.stack import stackfile
from hostwright.stack.stack import Stack

STACKS = Path(__file__).parents[3] / "inventory" / "stacks"
KINDS = sections_of(discover())


def load_stack(name: str, search_dirs: Sequence[Path] = (STACKS,)) -> Stack:
    """A stack; its extended ones are looked for in the directories only."""
    return stackfile.load_stack(name, search_dirs, KINDS)


def read_stack(data: Mapping[str, Any]) -> Stack:
    """A stack of plain data."""
    return stackfile.read_stack(data, KINDS)


def with_values(stack: Stack, **values: Mapping[str, Any]) -> Stack:
    """The stack with some values of some sections replaced: ``with_values(STACK, driver={"version": "470.1"})``."""
    changed = {name: stack.sections[name].model_copy(update=dict(one)) for name, one in values.items()}
    return stack.model_copy(update={"sections": {**stack.sections, **changed}})
