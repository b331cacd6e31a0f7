"""The failure rules of all roles, and their ways to read cards."""

from __future__ import annotations

from hostwright.audit import failures
from hostwright.audit.failures import FailureRule
from hostwright.plan.roles.role import discover

KNOWN = failures.known()
RULES, SIGNED, TREATMENTS = KNOWN.rules, KNOWN.signed, KNOWN.treatments
BY_NAME = {rule.name: rule for rule in RULES}
CARDS = tuple(part.CARDS for part in (role.part("gpus") for role in discover()) if part)
CARD_PROBES = tuple(probe for one in CARDS for probe in one.probes)


def with_message(layer: str) -> list[FailureRule]:
    """The rules of a layer that match a message, and have a sign on a host."""
    return [rule for rule in SIGNED if rule.pattern and rule.sign and rule.sign.layer == layer]
