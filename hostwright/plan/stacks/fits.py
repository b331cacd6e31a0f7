"""Finds the stacks that a host can have, and the compatibility rules that forbid the other stacks. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from hostwright.plan.roles.role import Role, rules_of
from hostwright.stack.ages import Advisories, Aged, aged, lifetimes
from hostwright.stack.fitting import Misfit
from hostwright.stack.rules import HostFacts, check_host
from hostwright.stack.stack import Stack


@dataclass(frozen=True, slots=True)
class StackFit:
    """Whether a host can have a stack with its default roles.

    ``misfits`` are the rules that forbid the stack on the host. ``aged`` are advisories against versions in the stack,
    and ``lifetimes`` the ends of their support. ``stand_ins`` are the stack's files that replace files of the vendor.
    """

    stack: str
    description: str
    misfits: tuple[Misfit, ...] = ()
    aged: tuple[Aged, ...] = ()
    lifetimes: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()

    @property
    def old(self) -> tuple[Aged, ...]:
        """The advisories against the stack, except recommendations of a newer series."""
        return tuple(one for one in self.aged if one.kind != "superseded")

    @property
    def fits(self) -> bool:
        """Whether no rule forbids the stack on the host."""
        return not self.misfits


@dataclass(frozen=True, slots=True)
class HostFits:
    """The fit of each stack for a host, the best stack first."""

    host: str
    facts: HostFacts
    stored: str = ""  #: time of the audit that read the host's facts; empty for facts read just now
    stacks: tuple[StackFit, ...] = ()


def fits(
    facts: HostFacts,
    stacks: Iterable[Stack],
    roles: Sequence[Role],
    advisories: Advisories,
    today: date,
    *,
    suggest: bool = True,
) -> tuple[StackFit, ...]:
    """Return the fit of each of ``stacks`` for a host with these facts, the best stack first.

    Stacks that fit come first, by number of advisories; misfits follow, by number of broken rules. Rules about free
    disk space are ignored, because space can be freed. With ``suggest=False``, misfits do not suggest combinations of
    versions that work.
    """
    by_name = {stack.name: stack for stack in stacks}
    found = []
    for stack in by_name.values():
        named = [role for role in roles if role.name in stack.roles]
        misfits = check_host(stack, facts, rules_of(named), suggest=suggest)
        found.append(_fit(stack, named, misfits, advisories, today))
    return tuple(sorted(found, key=lambda fit: _order(fit, len(by_name[fit.stack].artifacts))))


def _fit(
    stack: Stack, roles: Sequence[Role], misfits: Iterable[Misfit], advisories: Advisories, today: date
) -> StackFit:
    sections = (stack.sections[role.name] for role in roles if role.name in stack.sections)
    versions = {name: version for section in sections for name, version in section.versions().items()}
    return StackFit(
        stack.name,
        stack.description,
        tuple(misfits),
        aged(advisories, versions, today),
        lifetimes(advisories, versions, today),
        stack.stand_ins(stack.roles),
    )


def _order(fit: StackFit, files: int) -> tuple[object, ...]:
    numbers = tuple(-int(number) for number in re.findall(r"[0-9]{1,9}", fit.stack))
    return len(fit.misfits) > 0, len(fit.old) if fit.fits else 0, len(fit.misfits), files, _family(fit.stack), numbers


def _family(name: str) -> str:
    return re.split(r"-?[0-9]", name, maxsplit=1)[0]
