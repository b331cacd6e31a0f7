"""The products on a host whose ages are known, whoever installed them: of the host's states, and of its packages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from hostwright.audit.judging.context import AuditContext, Unread
from hostwright.common.canonical import Same
from hostwright.common.errors import NotAnswered
from hostwright.plan.facts import Facts
from hostwright.plan.model import Resource
from hostwright.plan.roles.software import Software
from hostwright.resources.packages.packages import named_like
from hostwright.stack.ages import Aged, aged, day_of, numbers


def aged_on(ctx: AuditContext) -> tuple[Aged, ...]:
    """What is known against the versions that are on the host; of a part that cannot be read, nothing."""
    known = ctx.desired.advisories
    if not known.products:
        return ()
    found = ctx.judged("installed products", installed)
    today = day_of(ctx.now)
    return tuple(dict.fromkeys(one for name, version in found for one in aged(known, {name: version}, today)))


def installed(ctx: AuditContext) -> tuple[tuple[str, str], ...]:
    """The products of the advisories that are on the host, each with its version."""
    products = ctx.desired.advisories.products
    known = tuple(pattern for product in products.values() for pattern in product.packages)
    there = [(one.name, one.version) for one in _software(ctx) if one.version]
    with suppress(Unread, NotAnswered):
        there += [(row.base, row.version) for row in ctx.packages.values() if row.present]
    found: dict[tuple[str, tuple[int, ...]], tuple[str, str]] = {}
    for package, version in there:
        if named_like(package, known):
            name = next(name for name, product in products.items() if named_like(package, product.packages))
            found.setdefault((name, numbers(version)), (name, version))  # a package has its maker's version, and more
    return tuple(found.values())


def _software(ctx: AuditContext) -> Iterator[Software]:
    for state in (state for role in ctx.desired.roles for state in role.resources):
        for piece in ctx.settled(("software", Same(state)), partial(_pieces, state)):
            yield from (piece, *piece.parts)


def _pieces(state: Resource, facts: Facts) -> tuple[Software, ...]:
    """Nothing where one of its probes was not asked: an error would be one for every host that looks alike."""
    try:
        return tuple(state.software(facts))
    except (KeyError, NotAnswered):
        return ()
