"""Lists all stacks with their files, versions, and records of tests. It contacts no host."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hostwright.common.errors import InputError
from hostwright.plan.roles.site import STANDARD
from hostwright.stack.stackfile import stack_names
from hostwright.stack.tried import TRIED_FILE, TriedRole, cells, read_trials

if TYPE_CHECKING:
    from hostwright.plan.targets import Roster
    from hostwright.stack.stack import Stack


@dataclass(frozen=True, slots=True)
class ListedStack:
    """A stack and its file. For an unusable stack, ``problem`` is the error text, and ``stack`` is ``None``."""

    name: str
    file: Path
    standard: bool  #: whether the stack is one of Hostwright's own
    stack: Stack | None = None
    matrix: tuple[TriedRole, ...] = ()  #: records of tests for each distribution release and role
    problem: str = ""


def list_stacks(roster: Roster) -> tuple[ListedStack, ...]:
    """Return all stacks, sorted by name. Of stacks with the same name, only the one that hosts use is returned.

    Raises ``InputError`` if a file with records of tests is unreadable.
    """
    return tuple(_listed(roster, name) for name in stack_names(roster.stack_dirs))


def _listed(roster: Roster, name: str) -> ListedStack:
    file = next(path for path in (folder / f"{name}.yml" for folder in roster.stack_dirs) if path.exists())
    standard = file.parent.resolve() == (STANDARD / "stacks").resolve()
    trials = read_trials(file.with_name(TRIED_FILE))
    try:
        stack = roster.stack(name)
    except InputError as error:
        return ListedStack(name, file, standard, problem=str(error))
    return ListedStack(name, file, standard, stack, cells(stack, trials))
