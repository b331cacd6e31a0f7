"""Choosing hosts: ``gpu01,gpu[03-09],@rack3,!gpu05,&dgx,~^dgx``.

Terms are separated by commas (or, as in Ansible, by colons). Whatever their order, plain terms are united first, then
``&`` terms intersect, then ``!`` terms exclude.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from hostwright.common.errors import InputError, InputErrors
from hostwright.common.input.nearest import suggestion
from hostwright.inventory.model import Host, Inventory

MAX_NAMES = 100_000  #: that a single term may expand to
_TERM = re.compile(r"[A-Za-z0-9._\-\[\],:/]+")
_SPAN = re.compile(r"(\d+)[-:](\d+)")
_OPTION = "--hosts"


def select(inventory: Inventory, pattern: str, named_sets: Mapping[str, Iterable[str]] | None = None) -> list[Host]:
    """The hosts that a pattern names, in the inventory's order.

    ``named_sets`` are sets of the last run for ``@`` terms, such as ``failed``; hosts in them that have left the
    inventory are ignored. An unknown name, an empty selection, or a selected host whose connection variables are
    invalid is an ``InputError``.
    """
    sets = {name: set(hosts) for name, hosts in (named_sets or {}).items()}
    chosen = _chosen(inventory, terms(pattern), sets)
    if not inventory.hosts:
        raise InputError("the inventory has no hosts yet: name them in its hosts.yml")
    if not chosen:
        raise InputError(f"{pattern!r} matches no host; the inventory has {len(inventory.hosts)}", _OPTION)
    hosts = [host for name, host in inventory.hosts.items() if name in chosen]
    mistakes = {str(mistake): mistake for host in hosts for mistake in host.mistakes}
    if mistakes:
        raise InputErrors(list(mistakes.values()))
    return hosts


def fold(names: Iterable[str]) -> str:
    """Names, abbreviated: ``gpu[01-03],login1``."""
    from ClusterShell.NodeSet import NodeSet

    return str(NodeSet.fromlist(list(names)))


def terms(pattern: str) -> list[str]:
    """The terms of a pattern; commas and colons inside brackets belong to their term, and so do colons after ``~``."""
    parts, depth = [""], 0
    for character in pattern:
        depth += (character in "[({") - (character in "])}")
        regular = parts[-1].lstrip("!& ").startswith("~")
        if depth <= 0 and (character == "," or (character == ":" and not regular)):
            parts.append("")
        else:
            parts[-1] += character
    return [term.strip() for term in parts if term.strip()]


def _chosen(inventory: Inventory, given: list[str], sets: Mapping[str, set[str]]) -> set[str]:
    plain = [term for term in given if term[0] not in "!&"]
    if not plain and given:
        plain = ["all"]
    chosen: set[str] = set()
    for term in plain:
        chosen |= _matches(inventory, term, sets, must_match=True)
    for term in given:
        if term[0] == "&":
            chosen &= _matches(inventory, term[1:].strip(), sets, must_match=True)
    for term in given:
        if term[0] == "!":
            chosen -= _matches(inventory, term[1:].strip(), sets, must_match=False)
    return chosen


def _matches(inventory: Inventory, term: str, sets: Mapping[str, set[str]], *, must_match: bool) -> set[str]:
    if term.startswith("~"):
        hosts = _by_expression(inventory, term[1:])
    elif "*" in term or "?" in term:
        hosts = _by_wildcard(inventory, term)
    elif term.startswith("@"):
        return _set(inventory, term[1:], sets)
    else:
        return _by_name(inventory, term)
    if must_match and not hosts:
        raise InputError(f"{term!r} matches no host", _OPTION)
    return hosts


def _by_expression(inventory: Inventory, expression: str) -> set[str]:
    try:
        compiled = re.compile(expression)
    except re.error as error:
        raise InputError(f"'~{expression}' is not a regular expression: {error}", _OPTION) from error
    return {name for name in inventory.hosts if compiled.search(name)}


def _by_wildcard(inventory: Inventory, term: str) -> set[str]:
    if term.startswith("@"):
        groups = [group for name, group in inventory.groups.items() if fnmatchcase(name, term[1:])]
        return {host for group in groups for host in group.hosts}
    return {name for name in inventory.hosts if fnmatchcase(name, term)}


def _set(inventory: Inventory, name: str, sets: Mapping[str, set[str]]) -> set[str]:
    if name in sets:
        return sets[name] & set(inventory.hosts)
    if name in inventory.groups:
        return set(inventory.groups[name].hosts)
    raise InputError(f"there is no group {name!r}; {suggestion(name, [*inventory.groups, *sets])}", _OPTION)


def _by_name(inventory: Inventory, term: str) -> set[str]:
    if term in inventory.hosts:
        return {term}
    if term in inventory.groups:
        return set(inventory.groups[term].hosts)
    names = _unfold(term)
    missing = [name for name in names if name not in inventory.hosts]
    if missing:
        known = [*inventory.hosts, *inventory.groups]
        raise InputError(f"there is no host {fold(missing)} in the inventory; {suggestion(missing[0], known)}", _OPTION)
    return set(names)


def _unfold(term: str) -> list[str]:
    """The names that ``gpu[01-03,7]`` expands to; without brackets, the term itself."""
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    if not _TERM.fullmatch(term):
        raise InputError(
            f"{term!r} is not a host, a group or a range such as gpu[01-08]; terms are separated by commas", _OPTION
        )
    if "[" not in term and "]" not in term:
        return [term]
    size = 1
    for first, last in _SPAN.findall(term):
        size *= max(1, int(last) - int(first) + 1)
    if size > MAX_NAMES:
        raise InputError(f"{term!r} expands to {size} names; at most {MAX_NAMES} are allowed", _OPTION)
    try:
        return list(NodeSet(_SPAN.sub(r"\1-\2", term), resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise InputError(f"{term!r} is not a range such as gpu[01-08,12]: {error}", _OPTION) from error
