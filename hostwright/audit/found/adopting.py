"""Draft a stack for a host from the nearest existing stack and the host's differences. All functions are pure."""

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
    """The facts and the installed software of one host, from which a stack is drafted."""

    host: str
    facts: HostFacts
    layers: Mapping[str, OnHost]


@dataclass(frozen=True, slots=True)
class StackDraft:
    """A draft stack for a host: the existing stack that the draft ``extends``, and the differences as ``data``.

    ``data`` is empty if the host matches that stack. ``left_out`` maps each omitted role of that stack to the reason.
    """

    extends: str
    data: Mapping[str, Any]
    left_out: Mapping[str, str] = field(default_factory=dict, compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Likeness:
    """The differences between a host and a stack.

    ``parts`` has the result for each layer of the stack. ``differing`` are the layers that differ; ``far`` is the sum
    of their distances. ``lacking`` are the layers of the stack that the host does not have.
    """

    stack: Stack
    parts: Mapping[str, Adopted]
    differing: tuple[str, ...]
    far: int
    lacking: tuple[str, ...]


def nearest(host: HostFound, stacks: Iterable[Stack], finders: Finders, fits: Sequence[StackFit]) -> Likeness | None:
    """Compare ``host`` with the most similar of ``stacks``; ``None`` if ``stacks`` is empty.

    Stacks for the host's distribution come first. Among these, the stack with the fewest differing layers is chosen,
    then the one with the nearest versions, then the one with the fewest missing layers.
    """
    places = {fit.stack: place for place, fit in enumerate(fits)}

    def rank(one: Likeness) -> tuple[bool, int, int, int, int]:
        place = places.get(one.stack.name, len(places))
        return not _is_for(one.stack, host.facts), len(one.differing), one.far, len(one.lacking), place

    return min((likeness(host, stack, finders) for stack in stacks), key=rank, default=None)


def _is_for(stack: Stack, facts: HostFacts) -> bool:
    return facts.version in stack.distributions.get(facts.distribution, ())


def likeness(host: HostFound, stack: Stack, finders: Finders) -> Likeness:
    """Compare ``stack`` with ``host``. Software in home directories is ignored, since stacks do not contain it."""
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
    """Draft the stack file of ``host`` as differences from the stack in ``like``, the result of ``nearest``."""
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
    by_name = {role.name: role for role in roles}
    gone: dict[str, str] = {}
    for name in names:
        kept = [by_name[other] for other in names if other not in left_out and other not in gone]
        lacking = [need for need in by_name[name].needs if not providers(need, kept)]
        if lacking and name not in left_out:
            gone[name] = f"needs {', '.join(lacking)}, which is left out"
    return gone


def stack_text(made: StackDraft, hosts: Sequence[str], day: date) -> str:
    """Return the text of the stack file for ``made``, with omitted roles and notes as comments."""
    head = [
        f"State of {fold(hosts)} on {day.isoformat()}, read by `{Command('adopt').line}`: {made.extends}, and the "
        "differences from it.",
        *(f"Left out, {role}: {reason}." for role, reason in made.left_out.items()),
        *(f"{note[:1].upper()}{note[1:]}." for note in made.notes),
    ]
    comments = "".join(f"# {line}\n" for text in head for line in _wrapped(text))
    data = {"extends": made.extends, "description": f"{made.extends} as found on {fold(hosts)}", **made.data}
    return f"{comments}\n{yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=118)}"


def _wrapped(text: str) -> Iterator[str]:
    from textwrap import wrap

    yield from wrap(short(text), 116, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
