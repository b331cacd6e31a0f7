"""What an audit looks at on hosts of which the same is wanted: rules, cards and probes, made once for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hostwright.audit.failures import Catalogue, catalogue
from hostwright.audit.found.reading import Finders, finders_of
from hostwright.audit.judging.context import Cards
from hostwright.audit.readings.answers import asked_for
from hostwright.audit.readings.changed import CHANGED
from hostwright.common.canonical import Same
from hostwright.plan.facts.expected import read_expected_gpus
from hostwright.plan.model import Facts, Probe
from hostwright.plan.probing import ordered
from hostwright.plan.roles.role import Role, providers, reading_cards
from hostwright.plan.targets import TargetHost


@dataclass(frozen=True)
class AuditScope:
    """What an audit looks at on hosts of which the same is wanted: made once for all of them."""

    target: TargetHost  #: one of them

    @cached_property
    def rules(self) -> Catalogue:
        """The failure rules of the roles that they have, including those that ``--roles`` leaves out, and the rules
        about cards of all roles."""
        own = tuple(role for role in self.target.all_roles if role in self._own)
        return catalogue(own, tuple(role for role in self._reading_cards if role not in own))

    def named(self, text: str) -> tuple[str, str] | None:
        """``Catalogue.named``; hosts whose logs are the same have the same text."""
        return self.target.memory.kept("named", (Same(self.rules), text), lambda: self.rules.named(text))

    @property
    def _own(self) -> tuple[Role, ...]:
        return self.target.of_host or self.target.roles

    @cached_property
    def _reading_cards(self) -> tuple[Role, ...]:
        return reading_cards(self.target.all_roles)

    @cached_property
    def cards(self) -> tuple[Cards, ...]:
        """How cards are read, by every role that there is: a host has its cards whatever its roles are."""
        return tuple(part.CARDS for role in self._reading_cards if (part := role.part("gpus")))

    @cached_property
    def finders(self) -> Finders:
        """How every role that there is finds what a host has of its layer, whoever installed it."""
        return finders_of(self.target.all_roles)

    @cached_property
    def _has_cards(self) -> bool:
        """Whether one of their roles brings a driver of cards, or the inventory says that they have cards."""
        wanted = any(providers(role.name, self._own) for role in self._reading_cards)
        return wanted or bool(read_expected_gpus(self.target.host))

    def judges_cards(self, facts: Facts) -> bool:
        """Whether the cards of one of them are judged: it shall have some, or there is a driver of cards."""
        return self._has_cards or any(cards.driven(facts) for cards in self.cards)

    @cached_property
    def probes(self) -> tuple[Probe, ...]:
        """Every probe of an audit, each once."""
        rules = (probe for rule in self.rules.signed if rule.sign for probe in rule.sign.probes)
        cards = (probe for part in self.cards for probe in part.probes)
        _, values = asked_for(self.target.stack.name, self.target.audit_values)
        return ordered([*self.target.desired.probes(), *cards, *values, CHANGED, *rules])

    @cached_property
    def unprivileged(self) -> tuple[Probe, ...]:
        """Those that need no root."""
        return tuple(probe for probe in self.probes if not probe.root)


def audited(target: TargetHost) -> AuditScope:
    """What an audit looks at on a host."""
    return target.shared("audited", lambda: AuditScope(target))


def audit_probes(target: TargetHost, *, sudo: bool = True) -> tuple[Probe, ...]:
    """Every probe of an audit of this host, each once; without ``sudo`` those that need no root.

    Failure rules and values are those of the host's own roles. Cards with the rules about them, and whatever is using
    the host, are probed on every host.
    """
    looks_at = audited(target)
    return looks_at.probes if sudo else looks_at.unprivileged


def found_probes(target: TargetHost) -> tuple[Probe, ...]:
    """The probes of what a host has that anybody set up; they need root, and only an audit asks them."""
    return audited(target).finders.probes


def rules_of(target: TargetHost) -> Catalogue:
    """The failure rules of the roles that the host has, including those that ``--roles`` leaves out."""
    return audited(target).rules


def cards_of(target: TargetHost) -> tuple[Cards, ...]:
    """How cards are read, by every role that there is: a host has its cards whatever its roles are."""
    return audited(target).cards
