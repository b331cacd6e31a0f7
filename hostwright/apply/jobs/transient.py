"""Transient failures: a lock held by another process, or a resolver or mirror that is briefly unavailable.

A step is repeated (up to ``Step.tries``) only if its own output names a transient cause, as defined by the failure
rules (``FailureRule.transient``). The host decides with ``grep -iP``, so that retries work without the controller. The
first match decides: line by line, in the order of the rules.

A full disk also causes download errors that look transient, so the rule for a full disk comes first.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import groupby

from hostwright.common.untrusted import Pattern
from hostwright.plan.model import RetryRule

BACKOFF_S = 5.0  #: seconds before the first retry of a step (our choice). Each further wait is twice as long.
BACKOFF_MAX_S = 60.0  #: maximum wait in seconds before a retry of a step, without random jitter
TAIL_BYTES = 64 * 1024  #: number of bytes to search for the cause of a failure at the end of a step's output


def table(rules: Iterable[RetryRule]) -> str:
    """Return ``rules`` as a file for the host. Each line has ``yes`` (retry) or ``no``, and a pattern.

    Neighboring rules with the same word share a line.

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
    """Return the last line of ``text`` that names a transient cause; empty if no line does."""
    passing = [rule for rule in rules if rule.passes]
    lines = reversed(text.split("\n"))
    return next((line.strip() for line in lines if any(names_it(rule, line) for rule in passing)), "")


def names_it(rule: RetryRule, line: str) -> bool:
    """Return whether ``line``, of a failed step's output, matches ``rule``."""
    return bool(_compiled(rule.pattern).search(line)) and not (rule.unless and _compiled(rule.unless).search(line))


@cache
def _compiled(pattern: str) -> Pattern:
    return Pattern(f"(?i){pattern}")


def _expression(rule: RetryRule) -> str:
    return f"^(?!.*(?:{rule.unless})).*(?:{rule.pattern})" if rule.unless else rule.pattern
