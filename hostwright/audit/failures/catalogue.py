"""All failures that the roles know, in the order in which they count.

First come root causes, whichever layer they are met in: a full disk makes every tool fail in words of its own. Then
what a layer knows counts before what the layers below it know (a key of the very repository before any missing key),
and within a layer what names the cause before what the tool around it says (a compiler's message in DKMS's make.log
before "Failed to install the kernel module through DKMS"). Last come general words: what pip says where it finds no
package, as it does without a network, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import get_args

from hostwright.audit.failures.rule import Covers, Failure, FailureRule, Weight
from hostwright.audit.failures.treatment import Treatment
from hostwright.audit.judging.look import Look
from hostwright.common.errors import InputError
from hostwright.plan.roles.role import Role, discover

#: the module of a role's folder that has them, as a tuple ``FAILURES``; ``COMMANDS`` are names of commands with which
#: their sentences begin
PART = "failures"
_WEIGHTS: tuple[Weight, ...] = get_args(Weight)


@dataclass(frozen=True)
class Catalogue:
    """Rules in the order in which they count."""

    rules: tuple[FailureRule, ...]
    commands: frozenset[str] = frozenset()  #: words with which sentences about them begin in a small letter

    @cached_property
    def signed(self) -> tuple[FailureRule, ...]:
        """Those that can be recognised on a host."""
        return tuple(rule for rule in self.rules if rule.sign)

    @cached_property
    def treatments(self) -> Mapping[str, Treatment]:
        """What a rebuild does, by the rule's name."""
        return {rule.name: rule.treatment for rule in self.rules if rule.treatment is not None}

    def classify(self, output: str) -> Failure | None:
        """The first rule that ``output`` matches, or ``None`` for a failure that nobody has met yet."""
        for rule in self.rules:
            match = _compiled(rule.pattern).search(output) if rule.pattern else None
            if match:
                start = output.rfind("\n", 0, match.start()) + 1
                end = output.find("\n", match.end())
                return Failure(rule, output[start : end if end >= 0 else len(output)].strip())
        return None

    def named(self, text: str) -> tuple[str, str] | None:
        """The name of the first rule whose message is in a text, and the line that says so."""
        failure = self.classify(text)
        return (failure.rule.name, failure.evidence) if failure else None

    def explained(self, output: str) -> str:
        """Cause and cure of what ``output`` says, as sentences; empty where nobody has met it yet."""
        failure = self.classify(output)
        return f"{failure.cause}. {failure.cure}" if failure else ""

    def evidence(self, rule: FailureRule, look: Look) -> list[str]:
        """What a rule sees on a host, without what another rule covers. Raises ``Unread`` when it cannot tell."""
        covered = [text for cover in self._covering.get(rule.name, ()) for text in cover.texts(look) if text]
        lines = rule.sign.seen(look) if rule.sign else ()
        return [line for line in lines if not any(text in line for text in covered)]

    @cached_property
    def _covering(self) -> Mapping[str, tuple[Covers, ...]]:
        covering: dict[str, tuple[Covers, ...]] = {}
        for cover in (rule.covers for rule in self.rules if rule.covers):
            covering[cover.rule] = (*covering.get(cover.rule, ()), cover)
        return covering


@cache
def catalogue(roles: tuple[Role, ...]) -> Catalogue:
    """What these roles know. ``roles`` stand in order, each after those that it needs."""
    owners: dict[str, str] = {}
    rules: list[FailureRule] = []
    for role in reversed(roles):
        for rule in failures_of(role):
            if rule.name in owners:
                where = f"roles/{role.name}/"
                raise InputError(f"the failure {rule.name} is in the role {owners[rule.name]} too", where)
            owners[rule.name] = role.name
            rules.append(rule)
    parts = (role.part(PART) for role in roles)
    return Catalogue(in_order(rules), frozenset(word for part in parts for word in getattr(part, "COMMANDS", ())))


def known() -> Catalogue:
    """What all roles know."""
    return catalogue(discover())


def in_order(rules: Iterable[FailureRule]) -> tuple[FailureRule, ...]:
    """Root causes first, general words last; all else as it stands."""
    return tuple(sorted(rules, key=lambda rule: _WEIGHTS.index(rule.weight)))


def failures_of(role: Role) -> Sequence[FailureRule]:
    """A role's own rules, in its order; none where it has no such part."""
    part = role.part(PART)
    if part is None:
        return ()
    rules: Sequence[FailureRule] | None = getattr(part, "FAILURES", None)
    if rules is None:
        raise InputError(f"{part.__name__} has no FAILURES, a tuple of failure rules", f"roles/{role.name}/")
    return rules


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)
