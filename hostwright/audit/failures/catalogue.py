"""The failure rules of all roles, in the order in which they are tried on the output of a tool.

1. Root causes in any layer, such as a full disk.
2. Causes. The rules of a layer come before the rules of the layers below. Within a layer, a message that names the
   cause comes before the message of the surrounding tool.
3. Final messages, which report that something failed but not why ("Bad return status for module build").
4. Consequences: messages with several possible causes (systemd no longer restarts a unit).
5. Wrappers: messages of a tool that ran another tool, which failed ("Job for UNIT failed").
6. General messages, such as pip's message that it finds no package. pip also prints this message without a network.
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

#: name of the module in a role's folder that defines ``FAILURES``
PART: Final = "failures"
_WEIGHTS: tuple[Weight, ...] = get_args(Weight)
_NEAR_LINES = 5  #: number of lines before and after a match that are searched for ``FailureRule.beside``


@dataclass(frozen=True)
class Catalogue:
    """A set of failure rules, in the order in which the rules are tried on an output."""

    rules: tuple[FailureRule, ...]
    commands: frozenset[str] = frozenset()  #: names of commands that stay lowercase at the beginning of a sentence
    tries: tuple[Try, ...] = ()

    @cached_property
    def signed(self) -> tuple[FailureRule, ...]:
        """The rules that have a ``Sign``, so that probes can find the failure on a host."""
        return tuple(rule for rule in self.rules if rule.sign)

    @cached_property
    def treatments(self) -> Mapping[str, Treatment]:
        """The treatment of each known failure in a rebuild of a host, by the name of the failure's rule."""
        return {rule.name: rule.treatment for rule in self.rules if rule.treatment is not None}

    @cached_property
    def retry_rules(self) -> tuple[RetryRule, ...]:
        """Patterns for the output of a failed step. The first match decides whether the step is retried."""
        verdicts = ((rule, rule.transient) for rule in self.rules if rule.pattern)
        return tuple(RetryRule(rule.pattern, passes, rule.unless) for rule, passes in verdicts if passes is not None)

    def check(self) -> None:
        """Compile all patterns of the rules now instead of on first use.

        Raises ``InputErrors`` if any pattern is invalid.
        """
        mistakes = Mistakes()
        for rule in self.rules:
            patterns = (rule.pattern, rule.closing, rule.unless, rule.narrower, rule.beside, *rule.names)
            for pattern in filter(None, (*patterns, *(variant.pattern for variant in rule.variants))):
                with mistakes:
                    try:
                        _compiled(pattern)
                    except re2.error as error:
                        # The error text begins with the reason; the pattern after the colon has flags that only
                        # ``_compiled`` adds.
                        why = error.args[0].decode("utf-8", "replace").partition(": ")[0]
                        sentence = f"the pattern {pattern!r} of the failure rule {rule.name} is invalid: {why}"
                        raise InputError(sentence) from error
        mistakes.refuse()

    def classify(self, output: str) -> Failure | None:
        """Return the first rule that matches ``output``, with the matching lines; ``None`` if no rule matches."""
        output = without_notes(output)
        forms = tuple(dict.fromkeys(without_tries(form, self.tries) for form in (output, *unwrapped(output))))
        for rule, pattern in self._messages:
            if failure := next((found for form in forms if (found := _found(rule, pattern, form, forms[1:]))), None):
                return failure
        return None

    @cached_property
    def _messages(self) -> tuple[tuple[FailureRule, str], ...]:
        patterns = [(rule, rule.pattern) for rule in self.rules if rule.pattern]
        causes = [each for each in patterns if _WEIGHTS.index(each[0].weight) <= _WEIGHTS.index("cause")]
        closing = [(rule, rule.closing) for rule in self.rules if rule.closing]
        return (*causes, *closing, *patterns[len(causes) :])

    def named(self, text: str) -> tuple[str, str] | None:
        """Return the name of the first rule that matches ``text``, and the matching line.

        ``None`` if no rule matches, or only a wrapper does: a tool's message about the failure of another tool.
        """
        failure = self._inner(text)
        return (failure.rule.name, failure.evidence) if failure else None

    def explained(self, output: str) -> Finding | None:
        """Return the known problem that ``output`` reports, with the matching line as evidence.

        ``None`` if no rule matches, or if the matching message only reports the failure of another tool. Probes on the
        host then identify the problem better.
        """
        failure = self._inner(output)
        return failure.rule.finding((failure.evidence,)) if failure else None

    def _inner(self, text: str) -> Failure | None:
        failure = self.classify(text)
        return None if failure is None or failure.rule.weight == "wrapper" else failure

    def evidence(self, rule: FailureRule, ctx: AuditContext) -> list[str]:
        """Return the evidence for ``rule`` on a host, without lines that a more precise rule reports (see ``Covers``).

        Raises ``Unread`` if probes gave no usable answer.
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
    """Return all failure rules of a host's ``roles``, and the rules about GPUs from ``of_cards``, roles of other hosts.

    In ``roles``, each role must come after the roles that it needs.
    """
    owners: dict[str, str] = {}
    rules: list[FailureRule] = []
    for role in (*reversed(roles), *of_cards):
        for rule in failures_of(role) if role in roles else _about_cards(role, roles):
            if rule.name in owners:
                where = f"roles/{role.name}/"
                raise InputError(f"the failure rule {rule.name} is also defined by the role {owners[rule.name]}", where)
            owners[rule.name] = role.name
            rules.append(rule)
    parts = [part for role in roles for part in role.parts(PART)]
    commands = frozenset(word for part in parts for word in getattr(part, "COMMANDS", ()))
    return Catalogue(in_order(rules), commands, tuple(tried for part in parts for tried in getattr(part, "TRIES", ())))


def known() -> Catalogue:
    """Return the catalogue of the rules of all existing roles."""
    return catalogue(discover())


def in_order(rules: Iterable[FailureRule]) -> tuple[FailureRule, ...]:
    """Sort ``rules`` by weight, root causes first. Rules of equal weight keep their order."""
    return tuple(sorted(rules, key=lambda rule: _WEIGHTS.index(rule.weight)))


def failures_of(role: Role) -> Sequence[FailureRule]:
    """Return the failure rules of ``role``, then other rules of the role that ``role`` extends."""
    known: list[FailureRule] = []
    for part in role.parts(PART):
        rules: Sequence[FailureRule] | None = getattr(part, "FAILURES", None)
        if rules is None:
            raise InputError(f"{part.__name__} has no FAILURES; define a tuple of failure rules", f"roles/{role.name}/")
        for rule in rules:
            if not isinstance(rule, FailureRule):
                raise InputError(f"FAILURES contains {rule!r}, which is not a FailureRule", f"roles/{role.name}/")
        names = {rule.name for rule in known}
        known += (rule for rule in rules if rule.name not in names)
    return known


def _about_cards(role: Role, instead: Iterable[Role]) -> Iterator[FailureRule]:
    layer = next((other.name for other in providers(role.name, instead)), "")
    for rule in failures_of(role):
        if rule.sign and rule.sign.layer == GPU_LAYER:
            cure = rule.treatment
            if isinstance(cure, Hardware) and cure.layer == role.name:
                cure = replace(cure, layer=layer)
            yield replace(rule, treatment=cure)


def _found(rule: FailureRule, pattern: str, output: str, plain: Iterable[str]) -> Failure | None:
    lines = _compiled(pattern).lines(output, _compiled(rule.unless) if rule.unless else None)
    narrowed = lines and rule.narrower and any(_compiled(rule.narrower).search(form) for form in (output, *plain))
    return None if lines is None or narrowed else Failure(rule, _with_other_half(rule, lines, output).strip())


def _with_other_half(rule: FailureRule, lines: str, output: str) -> str:
    if not rule.beside:
        return lines
    beside = _compiled(rule.beside)
    above, _, below = output.partition(lines)
    # The first line of ``below`` is the rest of the last matching line, so one more line is read.
    near = (above.splitlines()[-_NEAR_LINES:], below.splitlines()[: _NEAR_LINES + 1])
    before, after = ([line for line in some if beside.search(line)] for some in near)
    return "\n".join([*before, lines, *after])


@cache
def _compiled(pattern: str) -> Pattern:
    return Pattern(f"(?im){pattern}")
