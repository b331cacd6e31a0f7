"""All failures that the roles know, in the order in which they are tried.

First come root causes, in whichever layer they occur: a full disk makes every tool fail with a message of its own. Then
the rules of a layer come before those of the layers below it (the key of one repository before any missing key), and
within a layer, messages that name the cause come before those of the tool around it (a compiler's message in DKMS's
make.log before "Failed to install the kernel module through DKMS"). Then come the causes' closing lines, which say that
something failed and not why ("Bad return status for module build"), consequences, whose messages several
causes lead to (a unit that is not started any more), then the words of a tool around another that failed ("Job for
UNIT failed"), and last general messages, such as that of pip when it finds no package, which it also prints
when there is no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Final, get_args

import re2

from hostwright.audit.failures.harmless import Try, without_notes, without_tries
from hostwright.audit.failures.rule import Covers, Failure, FailureRule, Weight
from hostwright.audit.failures.treatment import Hardware, Treatment
from hostwright.audit.failures.unwrapped import unwrapped
from hostwright.audit.fleetaudit import GPU_LAYER
from hostwright.audit.judging.context import AuditContext
from hostwright.common.errors import Finding, InputError, Mistakes
from hostwright.common.untrusted import Pattern
from hostwright.plan.model import RetryRule
from hostwright.plan.roles.role import Role, discover, providers

#: the module of a role's folder that holds them, as a tuple ``FAILURES``; ``COMMANDS`` are names of commands with which
#: their sentences begin, ``TRIES`` are tries of their tools that failed before one that did not
PART: Final = "failures"
_WEIGHTS: tuple[Weight, ...] = get_args(Weight)
_NEAR_LINES = 5  #: above and below a match, for the other half of its message


@dataclass(frozen=True)
class Catalogue:
    """Failure rules in the order in which they are tried."""

    rules: tuple[FailureRule, ...]
    commands: frozenset[str] = frozenset()  #: words that keep their lower case at the beginning of a sentence
    tries: tuple[Try, ...] = ()  #: the roles' own tries that failed before one that did not

    @cached_property
    def signed(self) -> tuple[FailureRule, ...]:
        """The rules that can be recognised on a host."""
        return tuple(rule for rule in self.rules if rule.sign)

    @cached_property
    def treatments(self) -> Mapping[str, Treatment]:
        """What a rebuild does about each failure, by the name of its rule."""
        return {rule.name: rule.treatment for rule in self.rules if rule.treatment is not None}

    @cached_property
    def retry_rules(self) -> tuple[RetryRule, ...]:
        """What the rules say about another try of a failed step, in their order: the first that matches decides."""
        verdicts = ((rule, rule.transient) for rule in self.rules if rule.pattern)
        return tuple(RetryRule(rule.pattern, passes, rule.unless) for rule, passes in verdicts if passes is not None)

    def check(self) -> None:
        """Raise ``InputErrors`` for every pattern that cannot be read: one is compiled when it is first needed."""
        mistakes = Mistakes()
        for rule in self.rules:
            patterns = (rule.pattern, rule.closing, rule.unless, rule.narrower, rule.beside, *rule.names)
            for pattern in filter(None, (*patterns, *(variant.pattern for variant in rule.variants))):
                with mistakes:
                    try:
                        _compiled(pattern)
                    except re2.error as error:
                        why = error.args[0].decode("utf-8", "replace").partition(": ")[0]  # without our flags
                        sentence = f"the pattern {pattern!r} of the failure {rule.name} cannot be read: {why}"
                        raise InputError(sentence) from error
        mistakes.refuse()

    def classify(self, output: str) -> Failure | None:
        """The first rule that ``output`` matches, or ``None`` for an unknown failure."""
        output = without_notes(output)
        forms = tuple(dict.fromkeys(without_tries(form, self.tries) for form in (output, *unwrapped(output))))
        for rule, pattern in self._messages:
            if failure := next((found for form in forms if (found := _found(rule, pattern, form, forms[1:]))), None):
                return failure
        return None

    @cached_property
    def _messages(self) -> tuple[tuple[FailureRule, str], ...]:
        """The rules with their patterns, and after all causes with their closing lines."""
        patterns = [(rule, rule.pattern) for rule in self.rules if rule.pattern]
        causes = [each for each in patterns if _WEIGHTS.index(each[0].weight) <= _WEIGHTS.index("cause")]
        closing = [(rule, rule.closing) for rule in self.rules if rule.closing]
        return (*causes, *closing, *patterns[len(causes) :])

    def named(self, text: str) -> tuple[str, str] | None:
        """The name of the first rule whose message is in a text, and the line with the message; none for words around
        another failure."""
        failure = self._inner(text)
        return (failure.rule.name, failure.evidence) if failure else None

    def explained(self, output: str) -> Finding | None:
        """The known problem that ``output`` names, with the line that does; ``None`` where it is unknown, and for words
        around another failure, for which a look at the host tells more."""
        failure = self._inner(output)
        return failure.rule.finding((failure.evidence,)) if failure else None

    def _inner(self, text: str) -> Failure | None:
        failure = self.classify(text)
        return None if failure is None or failure.rule.weight == "wrapper" else failure

    def evidence(self, rule: FailureRule, ctx: AuditContext) -> list[str]:
        """The evidence for a rule on a host, without what another rule covers. Raises ``Unread`` where it cannot be
        checked.
        """
        covered = [text for cover in self._covering.get(rule.name, ()) for text in cover.texts(ctx) if text]
        lines = rule.sign.seen(ctx) if rule.sign else ()
        return [line for line in lines if not any(text in line for text in covered)]

    @cached_property
    def _covering(self) -> Mapping[str, tuple[Covers, ...]]:
        covering: dict[str, tuple[Covers, ...]] = {}
        for cover in (rule.covers for rule in self.rules if rule.covers):
            for name in cover.rules:
                covering[name] = (*covering.get(name, ()), cover)
        return covering


@cache
def catalogue(roles: tuple[Role, ...], of_cards: tuple[Role, ...] = ()) -> Catalogue:
    """The rules of these roles, which are in order, each after those that it needs; of ``of_cards``, which a host does
    not have, only the rules about cards."""
    owners: dict[str, str] = {}
    rules: list[FailureRule] = []
    for role in (*reversed(roles), *of_cards):
        for rule in failures_of(role) if role in roles else _about_cards(role, roles):
            if rule.name in owners:
                where = f"roles/{role.name}/"
                raise InputError(f"the failure {rule.name} is also defined by the role {owners[rule.name]}", where)
            owners[rule.name] = role.name
            rules.append(rule)
    parts = [part for role in roles for part in role.parts(PART)]
    commands = frozenset(word for part in parts for word in getattr(part, "COMMANDS", ()))
    return Catalogue(in_order(rules), commands, tuple(tried for part in parts for tried in getattr(part, "TRIES", ())))


def known() -> Catalogue:
    """The rules of all roles."""
    return catalogue(discover())


def in_order(rules: Iterable[FailureRule]) -> tuple[FailureRule, ...]:
    """Root causes first, then causes, consequences and general messages; otherwise the order stays."""
    return tuple(sorted(rules, key=lambda rule: _WEIGHTS.index(rule.weight)))


def failures_of(role: Role) -> Sequence[FailureRule]:
    """A role's rules, its own before those of the role that it extends; of two with one name its own."""
    known: list[FailureRule] = []
    for part in role.parts(PART):
        rules: Sequence[FailureRule] | None = getattr(part, "FAILURES", None)
        if rules is None:
            raise InputError(f"{part.__name__} has no FAILURES, a tuple of failure rules", f"roles/{role.name}/")
        for rule in rules:
            if not isinstance(rule, FailureRule):
                raise InputError(f"FAILURES holds {rule!r}, which is no FailureRule", f"roles/{role.name}/")
        names = {rule.name for rule in known}
        known += (rule for rule in rules if rule.name not in names)
    return known


def _about_cards(role: Role, instead: Iterable[Role]) -> Iterator[FailureRule]:
    """A role's rules about cards, for a host that has one of ``instead`` in its place, or none."""
    layer = next((other.name for other in providers(role.name, instead)), "")
    for rule in failures_of(role):
        if rule.sign and rule.sign.layer == GPU_LAYER:
            cure = rule.treatment
            if isinstance(cure, Hardware) and cure.layer == role.name:
                cure = replace(cure, layer=layer)
            yield replace(rule, treatment=cure)


def _found(rule: FailureRule, pattern: str, output: str, plain: Iterable[str]) -> Failure | None:
    """The failure and the lines of ``output`` that a pattern of its rule matches. ``plain`` are its forms without what
    loggers and terminals did to it: where one of them has what the rule's ``narrower`` finds, the rule does not apply.
    """
    lines = _compiled(pattern).lines(output, _compiled(rule.unless) if rule.unless else None)
    narrowed = lines and rule.narrower and any(_compiled(rule.narrower).search(form) for form in (output, *plain))
    return None if lines is None or narrowed else Failure(rule, _with_other_half(rule, lines, output).strip())


def _with_other_half(rule: FailureRule, lines: str, output: str) -> str:
    """The lines of a match with those near it that hold the other half of the message."""
    if not rule.beside:
        return lines
    beside = _compiled(rule.beside)
    above, _, below = output.partition(lines)
    near = (above.splitlines()[-_NEAR_LINES:], below.splitlines()[: _NEAR_LINES + 1])  # the rest of its own line first
    before, after = ([line for line in some if beside.search(line)] for some in near)
    return "\n".join([*before, lines, *after])


@cache
def _compiled(pattern: str) -> Pattern:
    return Pattern(f"(?im){pattern}")
