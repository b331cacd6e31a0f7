"""Rules, cards and probes of an audit, computed once for all hosts with the same desired state."""

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
    """Rules, cards and probes of an audit, for all hosts with the same desired state as ``target``."""

    target: TargetHost  #: any one of these hosts

    @cached_property
    def rules(self) -> Catalogue:
        """The failure rules of the hosts' roles, including roles that ``--roles`` excludes, and all roles' rules about
        cards.
        """
        own = tuple(role for role in self.target.all_roles if role in self._own)
        return catalogue(own, tuple(role for role in self._reading_cards if role not in own))

    def named(self, text: str) -> tuple[str, str] | None:
        """``Catalogue.named``, computed once for hosts with equal logs."""
        return self.target.memory.kept("named", (Same(self.rules), text), lambda: self.rules.named(text))

    @property
    def _own(self) -> tuple[Role, ...]:
        return self.target.of_host or self.target.roles

    @cached_property
    def _reading_cards(self) -> tuple[Role, ...]:
        return reading_cards(self.target.all_roles)

    @cached_property
    def cards(self) -> tuple[Cards, ...]:
        """How cards are read, for all existing roles: a host may have cards without a role that reads them."""
        return tuple(part.CARDS for role in self._reading_cards if (part := role.part("gpus")))

    @cached_property
    def finders(self) -> Finders:
        """The finders of all existing roles. They detect the software of a layer, whoever installed it."""
        return finders_of(self.target.all_roles)

    @cached_property
    def _has_cards(self) -> bool:
        """Whether a role of the hosts installs a driver for cards, or the inventory defines cards."""
        wanted = any(providers(role.name, self._own) for role in self._reading_cards)
        return wanted or bool(read_expected_gpus(self.target.host))

    def judges_cards(self, facts: Facts) -> bool:
        """Whether to judge the cards of a host: it should have cards, or it has a driver for cards."""
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
        """The probes that need no root."""
        return tuple(probe for probe in self.probes if not probe.root)


def audited(target: TargetHost) -> AuditScope:
    """The rules, cards and probes of an audit of this host."""
    return target.shared("audited", lambda: AuditScope(target))


def audit_probes(target: TargetHost, *, sudo: bool = True) -> tuple[Probe, ...]:
    """Every probe of an audit of this host, each once; without ``sudo``, only the probes that need no root.

    Failure rules and values are those of the host's own roles. Cards, with the rules about them, and current users of
    the host are probed on every host.
    """
    looks_at = audited(target)
    return looks_at.probes if sudo else looks_at.unprivileged


def found_probes(target: TargetHost) -> tuple[Probe, ...]:
    """The probes for installed software, whoever installed it. They need root, and only audits run them."""
    return audited(target).finders.probes


def rules_of(target: TargetHost) -> Catalogue:
    """The failure rules of the host's roles, including roles that ``--roles`` excludes."""
    return audited(target).rules


def cards_of(target: TargetHost) -> tuple[Cards, ...]:
    """How cards are read, for all existing roles: a host may have cards without a role that reads them."""
    return audited(target).cards
