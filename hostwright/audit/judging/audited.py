"""The failure rules, GPU interfaces and probes of an audit, shared by all hosts with the same desired state."""

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
    """The failure rules, GPU interfaces and probes of an audit of all hosts with the same desired state."""

    target: TargetHost  #: one of the hosts with this desired state

    @cached_property
    def rules(self) -> Catalogue:
        """Failure rules of all the hosts' roles, and rules about GPUs of all existing roles.

        Roles that ``--roles`` excludes are included.
        """
        own = tuple(role for role in self.target.all_roles if role in self._own)
        return catalogue(own, tuple(role for role in self._reading_cards if role not in own))

    def named(self, text: str) -> tuple[str, str] | None:
        """Return the name of the first failure rule that matches ``text``, and the matching line, as
        ``Catalogue.named`` does. The result is computed once for hosts with equal logs.
        """
        return self.target.memory.kept("named", (Same(self.rules), text), lambda: self.rules.named(text))

    @property
    def _own(self) -> tuple[Role, ...]:
        return self.target.of_host or self.target.roles

    @cached_property
    def _reading_cards(self) -> tuple[Role, ...]:
        return reading_cards(self.target.all_roles)

    @cached_property
    def cards(self) -> tuple[Cards, ...]:
        """The interfaces to GPUs of all existing roles, since a host may have GPUs but no role that reads them."""
        return tuple(part.CARDS for role in self._reading_cards if (part := role.part("gpus")))

    @cached_property
    def finders(self) -> Finders:
        """The finders of all existing roles, which also detect software that Hostwright did not install."""
        return finders_of(self.target.all_roles)

    @cached_property
    def _has_cards(self) -> bool:
        wanted = any(providers(role.name, self._own) for role in self._reading_cards)
        return wanted or bool(read_expected_gpus(self.target.host))

    def judges_cards(self, facts: Facts) -> bool:
        """Return whether the host with ``facts`` should have GPUs or has a GPU driver, so that GPU problems are
        reported.
        """
        return self._has_cards or any(cards.driven(facts) for cards in self.cards)

    @cached_property
    def probes(self) -> tuple[Probe, ...]:
        """All probes that an audit of the hosts needs, without duplicates."""
        rules = (probe for rule in self.rules.signed if rule.sign for probe in rule.sign.probes)
        cards = (probe for part in self.cards for probe in part.probes)
        _, values = asked_for(self.target.stack.name, self.target.audit_values)
        return ordered([*self.target.desired.probes(), *cards, *values, CHANGED, *rules])

    @cached_property
    def unprivileged(self) -> tuple[Probe, ...]:
        """The probes of an audit that do not need root."""
        return tuple(probe for probe in self.probes if not probe.root)


def audited(target: TargetHost) -> AuditScope:
    """Return the audit scope of the host ``target``, shared by hosts with the same desired state."""
    return target.shared("audited", lambda: AuditScope(target))


def audit_probes(target: TargetHost, *, sudo: bool = True) -> tuple[Probe, ...]:
    """Return all probes of an audit of the host ``target``; without ``sudo``, only the probes that do not need root.

    The host's own roles decide which probes are included, except those for GPUs and for the current users of the host.
    """
    looks_at = audited(target)
    return looks_at.probes if sudo else looks_at.unprivileged


def found_probes(target: TargetHost) -> tuple[Probe, ...]:
    """Return the probes that find installed software on the host ``target``.

    These probes need root, and only audits run them.
    """
    return audited(target).finders.probes


def rules_of(target: TargetHost) -> Catalogue:
    """Return the failure rules of all roles of ``target``, and the rules about GPUs of all existing roles.

    Roles that ``--roles`` excludes are included.
    """
    return audited(target).rules


def cards_of(target: TargetHost) -> tuple[Cards, ...]:
    """Return the interfaces to GPUs of all existing roles, since a host may have GPUs but no role that reads them."""
    return audited(target).cards
