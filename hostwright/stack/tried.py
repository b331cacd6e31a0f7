"""Records of tests of stacks (``tried.json`` in a folder of stacks): the roles tested on each distribution release.

A record applies to a stack as long as the stack pins the same versions.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from hostwright.common.errors import InputError
from hostwright.common.input.adapter import adapter
from hostwright.stack.stack import Stack
from hostwright.stack.stackvalues import StackPart

TRIED_FILE = "tried.json"
State = Literal["tried", "planned", "not tried"]


class Trial(StackPart):
    """A record of verbs that succeeded, for some roles of a stack, on hosts with one distribution release.

    ``host`` is ``lab`` for hosts in a lab, and ``facts`` for made-up facts, with which only planning is possible.
    ``stand_ins`` are artifacts that replace the vendor's files. ``tests`` are the test files. ``date`` is the day of
    the last recorded run; ``None`` without one.
    """

    stack: str
    versions: Mapping[str, str]
    distribution: str
    release: str
    host: Literal["lab", "facts"] = "lab"
    roles: tuple[str, ...]
    verbs: tuple[str, ...]
    stand_ins: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    date: datetime.date | None = None

    @property
    def state(self) -> State:
        """The state that the record proves: ``planned`` if only plans succeeded, else ``tried``."""
        return "planned" if self.host == "facts" or set(self.verbs) <= {"plan"} else "tried"

    @property
    def key(self) -> tuple[object, ...]:
        """Key that is equal in records that must be merged."""
        return self.stack, self.distribution, self.release, self.host, tuple(sorted(self.roles)), self.stand_ins

    def covers(self, other: Trial) -> bool:
        """Return whether all roles and verbs of ``other`` are also in this record, and whether all other fields are
        equal.
        """
        alike = all(getattr(self, name) == getattr(other, name) for name in _ALIKE)
        return alike and {*other.roles} <= {*self.roles} and {*other.verbs} <= {*self.verbs}

    def merged(self, other: Trial) -> Trial:
        """Return the merged record of two records with equal keys; ``other`` if their versions differ."""
        if dict(self.versions) != dict(other.versions):
            return other
        dates = [date for date in (self.date, other.date) if date]
        return self.model_copy(
            update={
                "verbs": tuple(sorted({*self.verbs, *other.verbs})),
                "tests": tuple(sorted({*self.tests, *other.tests})),
                "date": max(dates, default=None),
            }
        )


_ALIKE = ("stack", "versions", "distribution", "release", "host", "stand_ins")


@dataclass(frozen=True, slots=True)
class TriedRole:
    """The records of tests for one role of a stack on one distribution release, strongest state first."""

    distribution: str
    release: str
    role: str
    trials: tuple[Trial, ...] = ()

    @property
    def state(self) -> State:
        """The strongest state that a record proves: ``tried``, else ``planned``."""
        return self.trials[0].state if self.trials else "not tried"


def read_trials(file: Path) -> tuple[Trial, ...]:
    """Read the records in ``tried.json``; empty if it does not exist. Raises ``InputError`` for an unusable file."""
    try:
        return adapter(tuple[Trial, ...]).validate_json(file.read_bytes())
    except FileNotFoundError:
        return ()
    except (OSError, ValidationError) as error:
        raise InputError(f"the records of stack tests cannot be read: {error}", str(file)) from error


def trials_text(trials: Iterable[Trial]) -> str:
    """Return ``trials`` as the content of ``tried.json``: merged, sorted, and one record per line."""
    by_key: dict[tuple[object, ...], Trial] = {}
    for trial in trials:
        by_key[trial.key] = by_key[trial.key].merged(trial) if trial.key in by_key else trial
    left = [
        trial
        for trial in by_key.values()
        if not any(more.covers(trial) for more in by_key.values() if more is not trial)
    ]
    lines = (json.dumps(trial.model_dump(mode="json")) for trial in sorted(left, key=lambda trial: str(trial.key)))
    return "[\n" + ",\n".join(f" {line}" for line in lines) + "\n]\n"


def cells(stack: Stack, trials: Sequence[Trial]) -> tuple[TriedRole, ...]:
    """Return the cells of a stack's test matrix: each release with each role that is a default or has a record."""
    versions = stack.versions()
    counted = [trial for trial in trials if trial.stack == stack.name and dict(trial.versions) == versions]
    roles = dict.fromkeys((*stack.roles, *(role for trial in counted for role in trial.roles)))
    return tuple(
        TriedRole(distribution, release, role, _of(counted, distribution, release, role))
        for distribution, releases in stack.distributions.items()
        for release in releases
        for role in roles
    )


def _of(trials: Sequence[Trial], distribution: str, release: str, role: str) -> tuple[Trial, ...]:
    matching = [
        trial
        for trial in trials
        if (trial.distribution, trial.release) == (distribution, release) and role in trial.roles
    ]
    return tuple(sorted(matching, key=lambda trial: trial.state != "tried"))


def by_release(matrix: Iterable[TriedRole]) -> tuple[tuple[TriedRole, ...], ...]:
    """Group the cells of a stack's test matrix by distribution release."""
    return tuple(tuple(group) for _, group in groupby(matrix, key=lambda cell: (cell.distribution, cell.release)))
