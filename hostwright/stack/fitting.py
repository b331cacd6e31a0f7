"""The compatibility engine: evaluates rules about versions and hosts, and searches the nearest versions that break no
rule.

A role's ``roles/NAME/rules.py`` may define:

``RULES``
    functions of named parts that return a misfit: ``def floor(toolkit: str, driver: str) -> Misfit | None``
``CHOICES``
    versions that a stack could choose differently; each is a part under the choice's name
``GROUNDS``
    facts of a host that must change if no versions fit

A **part** is one of the following: a chosen version (``toolkit``), a fact of the host (``kernel``, ``gpus``, … of
``HostFacts``), a section of the stack (``toolkit_section``), all ``sections`` of the host's roles by name, or the
``stack``. A rule without a required part is skipped. A parameter with a default is optional.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from hostwright.stack.versions import version

Parts = Mapping[str, Any]
Combination = Mapping[str, str]  #: one version for each choice: name of a choice → version


@dataclass(frozen=True, slots=True)
class Misfit:
    """An incompatibility: the name of the broken rule, a sentence for the operator, and the source of the rule.

    ``nearest`` describes the nearest combination of versions that works, and is empty for a rule about versions.
    """

    rule: str
    sentence: str
    source: str
    nearest: str = ""

    def __str__(self) -> str:
        return f"{self.sentence} [{self.rule}: {self.source}]; what works: {self.nearest}"


Rule = Callable[..., Misfit | Iterable[Misfit] | None]


@dataclass(frozen=True, slots=True)
class Choice:
    """A piece of software of which a stack chooses a version, with all known versions.

    ``title`` is the name in messages. Messages list choices by ``rank``, lowest first. ``usual`` versions are preferred
    in suggestions. ``wanted`` returns the versions that a section of the stack accepts; by default, the section's
    version of this name.
    """

    name: str
    title: str
    rank: int
    versions: tuple[str, ...]
    usual: str = ""
    wanted: Callable[[Any], tuple[str, ...]] | None = None

    def of(self, section: Any) -> tuple[str, ...]:
        """Return the versions of this software that ``section`` of a stack accepts."""
        return self.wanted(section) if self.wanted else (section.versions()[self.name],)


@dataclass(frozen=True, slots=True)
class Ground:
    """A fact of a host that limits the versions that work.

    ``instead`` returns the facts that a combination of versions would need, for messages.
    """

    fact: str
    instead: Callable[..., str]


@dataclass(frozen=True, slots=True)
class RoleRules:
    """The compatibility rules of a role, its choices of versions, and the facts of hosts that limit these choices."""

    role: str
    rules: tuple[Rule, ...] = ()
    choices: tuple[Choice, ...] = ()
    grounds: tuple[Ground, ...] = ()


def misfits(rules: Iterable[Rule], parts: Parts) -> Iterator[Misfit]:
    """Yield every misfit that ``rules`` find for ``parts``, each rule evaluated once."""
    for rule in dict.fromkeys(rules):
        result = _called(rule, parts)
        yield from (result,) if isinstance(result, Misfit) else result or ()


def names_of(rule: Callable[..., Any]) -> frozenset[str]:
    """Return the names of the parts that ``rule`` takes as parameters, required or not."""
    return frozenset(_parameters(rule))


def nearest_fit(roles: Sequence[RoleRules], wanted: Combination, parts: Parts) -> str:
    """Describe the combination of versions closest to ``wanted`` that breaks no rule, given the other ``parts``.

    If no combination works, facts of the host that are ``grounds`` of a role are ignored one after another.
    """
    names = {name for role in roles for rule in role.rules for name in names_of(rule)}
    others = {name: value for name, value in parts.items() if name in names and name not in wanted}
    return _nearest_fit(tuple(roles), tuple(wanted.items()), _Others(tuple(map(repr, others.items())), others))


@dataclass(frozen=True, slots=True)
class _Others:
    key: tuple[str, ...]
    parts: Parts = field(compare=False)


@lru_cache(maxsize=256)  # one search takes 5 ms, and many hosts need the same search
def _nearest_fit(roles: tuple[RoleRules, ...], wanted: tuple[tuple[str, str], ...], others: _Others) -> str:
    before, parts = dict(wanted), dict(others.parts)
    choices = sorted(
        (choice for role in roles for choice in role.choices if choice.name in before), key=lambda choice: choice.rank
    )
    search = _Search(tuple(choices), before, tuple(rule for role in roles for rule in role.rules))
    best = search.best(parts)
    grounds = [ground for role in roles for ground in role.grounds]
    dropped: dict[str, Any] = {}
    for fact in [name for name in others.parts if name in {ground.fact for ground in grounds}]:
        if best is not None:
            break
        dropped[fact] = parts.pop(fact)
        best = search.best(parts)
    if best is None:
        return "no known combination"
    refused = [name for name, value in dropped.items() if any(misfits(search.rules, {**parts, **best, name: value}))]
    said = (_called(one.instead, {**others.parts, **best}) for name in refused for one in grounds if one.fact == name)
    return ", ".join([search.describe(best), *dict.fromkeys(filter(None, said))])


@dataclass(frozen=True, slots=True)
class _Search:
    choices: tuple[Choice, ...]
    wanted: Combination
    rules: tuple[Rule, ...]

    def best(self, parts: Parts) -> Combination | None:
        for changes in range(len(self.choices) + 1):
            if found := min(self._fitting({}, parts, changes), key=self._distance, default=None):
                return found
        return None

    def _fitting(self, chosen: Combination, parts: Parts, changes: int) -> Iterator[Combination]:
        if len(chosen) == len(self.choices):
            yield chosen
            return
        choice = self.choices[len(chosen)]
        later = {choice.name for choice in self.choices[len(chosen) + 1 :]}
        ripe = [rule for rule in self.rules if choice.name in names_of(rule) and later.isdisjoint(names_of(rule))]
        wanted = self.wanted[choice.name]
        for release in dict.fromkeys((wanted, *choice.versions)) if changes else (wanted,):
            combination = {**chosen, choice.name: release}
            if next(misfits(ripe, {**parts, **combination}), None) is None:
                yield from self._fitting(combination, parts, changes - (release != wanted))

    def _changed(self, combination: Combination) -> list[Choice]:
        return [choice for choice in self.choices if combination[choice.name] != self.wanted[choice.name]]

    def _distance(self, combination: Combination) -> tuple[object, ...]:
        changed = self._changed(combination)
        strange = [choice for choice in changed if combination[choice.name] != choice.usual]
        steps = [_step(self.wanted[choice.name], combination[choice.name]) for choice in changed]
        return len(changed), len(strange), steps, self._names(combination, self.choices)

    def describe(self, best: Combination) -> str:
        changed = self._changed(best)
        if not changed:
            return self._names(best, self.choices)
        news = ", ".join(
            f"{choice.title} {best[choice.name]} instead of {self.wanted[choice.name]}" for choice in changed
        )
        rest = self._names(best, [choice for choice in self.choices if choice not in changed])
        return f"{news} (with {rest})" if rest else news

    @staticmethod
    def _names(combination: Combination, choices: Iterable[Choice]) -> str:
        return ", ".join(dict.fromkeys(f"{choice.title} {combination[choice.name]}" for choice in choices))


@cache
def _parameters(rule: Callable[..., Any]) -> Mapping[str, bool]:
    signature = inspect.signature(rule).parameters
    return {name: parameter.default is inspect.Parameter.empty for name, parameter in signature.items()}


def _called(rule: Callable[..., Any], parts: Parts) -> Any:
    asked = _parameters(rule)
    if any(needed and name not in parts for name, needed in asked.items()):
        return None
    return rule(**{name: parts[name] for name in asked if name in parts})


def _step(before: str, after: str) -> tuple[int, ...]:
    pairs = zip(version(before).release, version(after).release, strict=False)
    return tuple(abs(old - new) for old, new in pairs)
