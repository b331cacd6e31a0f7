"""``invoke stacks``: the available stacks, and what was tried where."""

from __future__ import annotations

from hostwright.cli.arguments import Selection
from hostwright.cli.opening import open_fleet, refuse_strangers
from hostwright.cli.views.stacks import show_stacks
from hostwright.common.errors import AS_DESIRED, BAD_INPUT


def stacks(selection: Selection, *, as_json: bool = False) -> int:
    """``invoke stacks``; a stack that cannot be used is bad input."""
    fleet = open_fleet(selection)
    refuse_strangers(fleet)
    listed = fleet.stacks()
    show_stacks(listed, as_json=as_json)
    return BAD_INPUT if any(stack.problem for stack in listed) else AS_DESIRED
