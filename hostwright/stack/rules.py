"""Checks whether a stack is consistent, and whether it fits a host, before the host is changed.

``check_stack`` needs no host; ``check_host`` needs ``HostFacts``. The rules come from the host's roles, except two
rules for every host: distribution and machine type.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

from hostwright.common.errors import InputError
from hostwright.common.input.nearest import suggestion
from hostwright.common.text import shown_bytes
from hostwright.stack.fitting import Combination, Misfit, RoleRules, Rule, misfits, names_of, nearest_fit
from hostwright.stack.stack import Stack


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The facts of a host that rules need. ``None`` or an empty tuple means unknown; no rule rejects an unknown fact.

    ``distribution`` and ``version`` are os-release's ID and VERSION_ID, ``kernel`` and ``machine`` the output of
    ``uname -r`` and ``-m``. ``gpus`` are PCI ids (vendor, device). ``pythons`` are minor versions (``3.9``),
    ``interpreters`` the same with paths. Sizes are in bytes; ``free_bytes`` is the least free space on ``/``, ``/var``
    and ``/tmp``.
    """

    distribution: str
    version: str
    kernel: str | None = None
    machine: str | None = None
    gpus: tuple[tuple[int, int], ...] = ()
    avx: bool | None = None
    pythons: tuple[str, ...] = ()
    interpreters: tuple[str, ...] = ()
    memory_bytes: int | None = None
    free_bytes: int | None = None

    def parts(self) -> dict[str, Any]:
        """Return the known facts: name → value."""
        values = {fact.name: getattr(self, fact.name) for fact in fields(self)}
        return {name: value for name, value in values.items() if value is not None and value != ()}


_FACTS = frozenset(fact.name for fact in fields(HostFacts))


def check_stack(stack: Stack, roles: Sequence[RoleRules]) -> list[Misfit]:
    """Return the reasons why no host with these roles can have this stack; empty if the stack is consistent."""
    parts = _parts(stack, roles)
    rules = [rule for role in roles for rule in role.rules]
    combinations = _combinations(stack, roles)
    by_sentence = {
        misfit.sentence: misfit
        for rule in rules
        for way in combinations
        for misfit in misfits([rule], {**parts, **way})
    }
    if not by_sentence:
        return []
    wanted = _first_that_fits(stack, roles)
    return [_with_nearest(misfit, roles, wanted, parts) for misfit in by_sentence.values()]


def never_applied(rule: Rule, roles: Sequence[RoleRules], sections: Collection[str]) -> Iterator[InputError]:
    """Yield an error for each part that ``rule`` requires and that neither hosts nor stacks ever have.

    ``sections`` are the roles with a section in stack files.
    """
    choices = (choice.name for role in roles for choice in role.choices)
    parts = {*_FACTS, "stack", "sections", *choices, *(f"{role}_section" for role in sections)}
    for name in sorted(names_of(rule) - parts):
        sentence = f"this compatibility rule has the unknown parameter {name!r}, so it is never applied"
        code = inspect.unwrap(rule).__code__
        yield InputError(f"{sentence}; {suggestion(name, parts)}", f"{code.co_filename}:{code.co_firstlineno}")


def check_host(
    stack: Stack,
    facts: HostFacts,
    roles: Sequence[RoleRules],
    looked_at: Collection[str] | None = None,
    *,
    suggest: bool = True,
) -> list[Misfit]:
    """Return the reasons why a host with ``facts`` and these roles cannot have ``stack``; empty if it can.

    ``looked_at`` are the roles to check, by default all. ``suggest=False`` skips the search for a working combination
    of versions, which may take a second. Call ``check_stack`` first.
    """
    wanted = _first_that_fits(stack, roles)
    parts = {**_parts(stack, roles), **facts.parts()}
    rules = [rule for rule in (*_OF_EVERY_HOST, *_asked(roles, looked_at)) if names_of(rule) & _FACTS]
    found = misfits(rules, {**parts, **wanted})
    return [_with_nearest(misfit, roles, wanted, parts) if suggest else misfit for misfit in found]


def _asked(roles: Sequence[RoleRules], looked_at: Collection[str] | None) -> Iterator[Rule]:
    here = {role.role for role in roles} if looked_at is None else set(looked_at)
    chosen = {choice.name for role in roles if role.role in here for choice in role.choices}
    for role in roles:
        yield from (rule for rule in role.rules if role.role in here or names_of(rule) & chosen)


def _with_nearest(misfit: Misfit, roles: Sequence[RoleRules], wanted: Combination, parts: dict[str, Any]) -> Misfit:
    return misfit if misfit.nearest else replace(misfit, nearest=nearest_fit(roles, wanted, parts))


def _parts(stack: Stack, roles: Iterable[RoleRules]) -> dict[str, Any]:
    sections = {role.role: stack.sections[role.role] for role in roles if role.role in stack.sections}
    return {"stack": stack, "sections": sections, **{f"{role}_section": one for role, one in sections.items()}}


def _combinations(stack: Stack, roles: Iterable[RoleRules]) -> list[Combination]:
    given = {
        choice.name: choice.of(stack.sections[role.role])
        for role in roles
        if role.role in stack.sections
        for choice in role.choices
    }
    return [dict(zip(given, versions, strict=True)) for versions in product(*given.values())]


def _first_that_fits(stack: Stack, roles: Sequence[RoleRules]) -> Combination:
    combinations, names = _combinations(stack, roles), {choice.name for role in roles for choice in role.choices}
    rules = [rule for role in roles for rule in role.rules if names_of(rule) <= names]
    return min(combinations, key=lambda combination: len(list(misfits(rules, combination))))


def distribution_is_of_the_stack(distribution: str, version: str, stack: Stack) -> Misfit | None:
    """Return a misfit unless ``stack`` supports the host's distribution."""
    if version in stack.distributions.get(distribution, ()):
        return None
    supported = ", ".join(f"{name} {release}" for name, releases in stack.distributions.items() for release in releases)
    sentence = f"the host has {distribution} {version}, which the stack {stack.name} does not support"
    return Misfit("distribution", sentence, "distributions of the stack", supported or "none")


def machine_is_of_the_stack(machine: str, stack: Stack) -> Misfit | None:
    """Return a misfit unless ``stack`` supports the host's machine type."""
    want = stack.requirements.machine
    if machine == want:
        return None
    sentence = f"the host's machine type is {machine}, but the stack requires {want}"
    return Misfit("machine", sentence, "requirements of the stack", f"a host of type {want}")


_OF_EVERY_HOST: tuple[Rule, ...] = (distribution_is_of_the_stack, machine_is_of_the_stack)


def memory_is_enough(memory_bytes: int, stack: Stack) -> Misfit | None:
    """Return a misfit unless the host has the memory that ``stack`` requires."""
    return _room("memory", "memory", memory_bytes, stack.requirements.memory_bytes)


def disk_is_enough(free_bytes: int, stack: Stack) -> Misfit | None:
    """Return a misfit unless the host has the free disk space that ``stack`` requires."""
    return _room("disk", "free disk space on /, /var or /tmp", free_bytes, stack.requirements.free_bytes)


def _room(rule: str, what: str, have: int, want: int) -> Misfit | None:
    if have >= want:
        return None
    sentence = f"the host has {shown_bytes(have)} of {what}, but the stack requires {shown_bytes(want)}"
    return Misfit(rule, sentence, "requirements of the stack", f"{shown_bytes(want)} or more")
