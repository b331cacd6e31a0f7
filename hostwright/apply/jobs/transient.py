"""Transient failures: a lock that somebody holds, a resolver or a mirror that is away for a moment.

A step that may be repeated (``Step.tries``) is repeated only when its own output names such a cause. The failure rules
say which (``FailureRule.transient``): what is retried and what an operator is told have one source. It is decided on
the host, so that it goes on without the controller: ``grep -iP`` tries the rules' own expressions there, line by line,
in the rules' order, and the first that matches decides. A full disk also makes downloads fail in words that pass by
themselves; its rule comes before theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import groupby

from hostwright.common.untrusted import Pattern
from hostwright.plan.model import RetryRule

BACKOFF_S = 5.0  #: our choice: before the first retry; twice as long before each further one
BACKOFF_MAX_S = 60.0  #: the longest; up to half of it is added by chance, so that a fleet does not return in step
TAIL_BYTES = 64 * 1024  #: of a try's output that is looked at: what a failure is for stands at its end


def table(rules: Iterable[RetryRule]) -> str:
    """The rules as the host reads them: a line each, ``yes`` or ``no`` and an expression; neighbours are joined.

    >>> print(table([RetryRule("disk full", False), RetryRule("busy", True), RetryRule("away", True)]))
    no (?:disk full)
    yes (?:busy)|(?:away)
    >>> print(table([RetryRule("disk full", False, unless="quota of inodes")]))
    no (?:^(?!.*(?:quota of inodes)).*(?:disk full))
    """
    return "\n".join(
        f"{'yes' if passes else 'no'} {'|'.join(f'(?:{_expression(rule)})' for rule in group)}"
        for passes, group in groupby(rules, lambda rule: rule.passes)
    )


def reason(rules: Iterable[RetryRule], text: str) -> str:
    """The last line that names a transient cause; empty when none does."""
    passing = [rule for rule in rules if rule.passes]
    lines = reversed(text.split("\n"))
    return next((line.strip() for line in lines if any(names_it(rule, line) for rule in passing)), "")


def names_it(rule: RetryRule, line: str) -> bool:
    """Whether a line of a failed step's output names the rule's cause."""
    return bool(_compiled(rule.pattern).search(line)) and not (rule.unless and _compiled(rule.unless).search(line))


@cache
def _compiled(pattern: str) -> Pattern:
    return Pattern(f"(?i){pattern}")


def _expression(rule: RetryRule) -> str:
    """What ``grep -P`` tries on a line. It has no second pattern, but can look ahead."""
    return f"^(?!.*(?:{rule.unless})).*(?:{rule.pattern})" if rule.unless else rule.pattern
