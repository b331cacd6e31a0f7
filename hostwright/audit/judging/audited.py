"""What an audit looks at on hosts of which the same is wanted: rules, cards and probes, made once for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from hostwright.audit.failures import Catalogue, catalogue
from hostwright.audit.judging.look import Cards
from hostwright.audit.readings.answers import asked_for
from hostwright.common.canonical import Same
from hostwright.plan.member import Member
from hostwright.plan.model import Probe
from hostwright.plan.probing import ordered
from hostwright.plan.roles.role import Role


@dataclass(frozen=True)
class AuditScope:
    """What an audit looks at on hosts of which the same is wanted: made once for all of them."""

    member: Member  #: one of them

    @cached_property
    def rules(self) -> Catalogue:
        """The failure rules of the roles that they have, including those that ``--roles`` leaves out."""
        own = self.member.of_host or self.member.roles
        return catalogue(tuple(role for role in self.member.all_roles if role in own))

    def named(self, text: str) -> tuple[str, str] | None:
        """``Catalogue.named``; hosts whose logs are the same have the same text."""
        return self.member.memory.kept("named", (Same(self.rules), text), lambda: self.rules.named(text))

    @cached_property
    def own_cards(self) -> tuple[Cards, ...]:
        """How cards are read by the roles of these hosts: of others it is not known whether any can be read."""
        return _readers(self.member.of_host or self.member.roles)

    @cached_property
    def cards(self) -> tuple[Cards, ...]:
        """How cards are read, by every role that there is: a host has its cards whatever its roles are."""
        return _readers(self.member.all_roles)

    @cached_property
    def probes(self) -> tuple[Probe, ...]:
        """Every probe of an audit, each once."""
        rules = (probe for rule in self.rules.signed if rule.sign for probe in rule.sign.probes)
        cards = (probe for part in self.cards for probe in part.probes)
        _, values = asked_for(self.member.stack.name, self.member.audit_values)
        return ordered([*self.member.desired.probes(), *cards, *values, *rules])

    @cached_property
    def unprivileged(self) -> tuple[Probe, ...]:
        """Those that need no root."""
        return tuple(probe for probe in self.probes if not probe.root)


def _readers(roles: Iterable[Role]) -> tuple[Cards, ...]:
    parts = (role.part("gpus") for role in roles)
    return tuple(part.CARDS for part in parts if part is not None)


def audited(member: Member) -> AuditScope:
    """What an audit looks at on a host."""
    return member.shared("audited", lambda: AuditScope(member))


def audit_probes(member: Member, *, sudo: bool = True) -> tuple[Probe, ...]:
    """Every probe of an audit of this host, each once; without ``sudo`` those that need no root.

    Failure rules and values are those of the host's own roles. Cards, and whatever is using the host, are probed on
    every host.
    """
    looks_at = audited(member)
    return looks_at.probes if sudo else looks_at.unprivileged


def rules_of(member: Member) -> Catalogue:
    """The failure rules of the roles that the host has, including those that ``--roles`` leaves out."""
    return audited(member).rules


def cards_of(member: Member) -> tuple[Cards, ...]:
    """How cards are read, by every role that there is: a host has its cards whatever its roles are."""
    return audited(member).cards
