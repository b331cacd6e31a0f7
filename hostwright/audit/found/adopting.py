"""A stack that is what a host has: the nearest one, and what differs from it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import yaml

from hostwright.audit.found.reading import HOMES, Finders
from hostwright.common.command import Command
from hostwright.common.text import short
from hostwright.inventory.patterns import fold
from hostwright.plan.roles.found import OTHER, Adopted, OnHost
from hostwright.plan.roles.role import Role, providers
from hostwright.plan.stacks.fits import StackFit
from hostwright.stack.rules import HostFacts
from hostwright.stack.stack import Stack


@dataclass(frozen=True, slots=True)
class HostFound:
    """What was read on one host, from which its stack is drafted."""

    host: str
    facts: HostFacts
    layers: Mapping[str, OnHost]


@dataclass(frozen=True, slots=True)
class StackDraft:
    """A stack for a host: ``data`` is what its file holds beside the stack ``extends``, and is empty where a host
    differs in nothing. ``left_out`` says why each role of that stack is not among its roles."""

    extends: str
    data: Mapping[str, Any]
    left_out: Mapping[str, str] = field(default_factory=dict, compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Likeness:
    """How near a stack is to a host: what each of its layers has there; in which layers that the host has they differ,
    and how far together; and which layers of the stack the host has not."""

    stack: Stack
    parts: Mapping[str, Adopted]
    differing: tuple[str, ...]
    far: int
    lacking: tuple[str, ...]


def nearest(host: HostFound, stacks: Iterable[Stack], finders: Finders, fits: Sequence[StackFit]) -> Likeness | None:
    """Of the stacks for the host's distribution, else of all, the one that differs in the fewest layers that the host
    has; of equal ones that whose versions are nearer, then that of which the host lacks less, and then that which comes
    first in ``fits``. ``None`` where there is no stack."""
    places = {fit.stack: place for place, fit in enumerate(fits)}

    def rank(one: Likeness) -> tuple[bool, int, int, int, int]:
        place = places.get(one.stack.name, len(places))
        return not _is_for(one.stack, host.facts), len(one.differing), one.far, len(one.lacking), place

    return min((likeness(host, stack, finders) for stack in stacks), key=rank, default=None)


def _is_for(stack: Stack, facts: HostFacts) -> bool:
    return facts.version in stack.distributions.get(facts.distribution, ())


def likeness(host: HostFound, stack: Stack, finders: Finders) -> Likeness:
    """How near a stack is to a host. What people keep in their homes does not count, and no stack has it."""
    parts: dict[str, Adopted] = {}
    there: dict[str, int] = {}
    for layer, finder in finders.by_layer.items():
        if not finder.adopted:
            continue
        found = _outside_homes(host.layers.get(layer, OnHost()))
        if layer in stack.roles and layer in stack.sections:
            parts[layer] = finder.adopted(found, stack.sections[layer])
        if next(finder.values(found), None):
            there[layer] = parts[layer].unlike if layer in parts else OTHER
    differing = tuple(layer for layer, unlike in there.items() if unlike)
    lacking = tuple(layer for layer in parts if layer not in there)
    return Likeness(stack, parts, differing, sum(there.values()), lacking)


def _outside_homes(found: OnHost) -> OnHost:
    return replace(found, packages=tuple(one for one in found.packages if not one.environment.startswith(HOMES)))


def draft(host: HostFound, like: Likeness, roles: Sequence[Role]) -> StackDraft:
    """The stack file for a host."""
    stack = like.stack
    left_out = {layer: part.left_out for layer, part in like.parts.items() if part.left_out}
    left_out |= _without_needs(stack.roles, left_out, roles)
    kept = [name for name in stack.roles if name not in left_out]
    sections = {name: dict(part.section) for name, part in like.parts.items() if name in kept and part.section}
    artifacts = {key: value for name in kept if name in like.parts for key, value in like.parts[name].artifacts.items()}
    data: dict[str, Any] = {}
    if kept != list(stack.roles):
        data["roles"] = kept
    if not _is_for(stack, host.facts):
        data["distributions"] = {host.facts.distribution: [host.facts.version]}
    data |= sections
    if artifacts:
        data["artifacts"] = artifacts
    notes = [note for name in kept if name in like.parts for note in like.parts[name].notes]
    return StackDraft(stack.name, data, left_out, tuple(notes))


def _without_needs(names: Sequence[str], left_out: Mapping[str, str], roles: Sequence[Role]) -> Mapping[str, str]:
    """The roles that need one which is left out, and so on, with the reason."""
    by_name = {role.name: role for role in roles}
    gone: dict[str, str] = {}
    for name in names:  # each comes after those that it needs
        kept = [by_name[other] for other in names if other not in left_out and other not in gone]
        lacking = [need for need in by_name[name].needs if not providers(need, kept)]
        if lacking and name not in left_out:
            gone[name] = f"needs {', '.join(lacking)}, which is left out"
    return gone


def stack_text(made: StackDraft, hosts: Sequence[str], day: date) -> str:
    """The file of a stack, with what is left out and why as comments."""
    head = [
        f"What {fold(hosts)} had on {day.isoformat()}, as `{Command('adopt').line}` read it: {made.extends}, and what "
        "differs from it.",
        *(f"Left out, {role}: {reason}." for role, reason in made.left_out.items()),
        *(f"{note[:1].upper()}{note[1:]}." for note in made.notes),
    ]
    comments = "".join(f"# {line}\n" for text in head for line in _wrapped(text))
    data = {"extends": made.extends, "description": f"{made.extends} as found on {fold(hosts)}", **made.data}
    return f"{comments}\n{yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=118)}"


def _wrapped(text: str) -> Iterator[str]:
    """A text in lines; those after the first are indented."""
    from textwrap import wrap

    yield from wrap(short(text), 116, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
