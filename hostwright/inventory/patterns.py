"""Selects hosts by a pattern such as ``gpu01,gpu[03-09],@rack3,!gpu05,&dgx,~dgx``. Ansible's patterns also work.

Terms are separated by commas or, as in Ansible, by colons. First, the hosts of plain terms are united. Then terms with
``&`` intersect the result, and hosts of terms with ``!`` are excluded. Names, wildcards and regular expressions match
groups and hosts. ``web[0]``, ``web[-1]`` and ``web[0:2]`` select hosts of ``web`` by index, in Ansible's order.

In addition to Ansible's patterns, ``@`` marks a group, a set of hosts of the last run, or a set of a named run
(``@failed:RUN``), and ``gpu[01-03,7]`` is a list of names. A term that matches nothing is an error, even after ``!``:
a misspelt exclusion would select too many hosts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import pairwise

from hostwright.common.command import Command
from hostwright.common.errors import InputError, InputErrors
from hostwright.common.input.nearest import suggestion
from hostwright.common.places import OF_A_RUN, RUN_SETS
from hostwright.inventory.model import UNGROUPED, Host, Inventory
from hostwright.inventory.ranges import is_ipv6

MAX_NAMES = 100_000  #: maximum number of host names to which one term of a host pattern expands
_MAX_DIGITS = 12  #: maximum number of digits of a number in the brackets of a host pattern
_TERM = re.compile(r"[\w.@\-\[\],:/]+")
_SPAN = re.compile(r"([0-9]+)[-:]([0-9]+)")
_SUBSCRIPT = re.compile(r"(?P<base>.+)\[(?:(?P<index>-?[0-9]+)|(?P<first>[0-9]+)(?P<sign>[:-])(?P<last>[0-9]*))\]")
_SPECIAL = frozenset(".?*[")  #: characters with which a term of a host pattern matches both groups and hosts
_FOLDABLE = re.compile(r"[\w.-]+")  #: pattern of host names that can be abbreviated
_OPTION = "--hosts"
#: maximum length in characters of an abbreviated list of hosts
NAMED_CHARACTERS = 60
_NAMED = 5  #: maximum number of hosts that an error message names


def select(
    inventory: Inventory, pattern: str, named_sets: Mapping[str, Iterable[str]] | None = None, *, usable: bool = True
) -> list[Host]:
    """Return the hosts that ``pattern`` selects, in the inventory's order.

    ``named_sets`` are sets of hosts for ``@`` terms, such as ``failed`` of the last run. Raises ``InputError`` for an
    unknown name and for an empty selection. With ``usable``, raises ``InputError`` also for hosts with mistakes, and if
    several of the hosts are this machine.
    """
    sets = {name: set(hosts) for name, hosts in (named_sets or {}).items()}
    names = inventory.hosts.keys() | inventory.groups.keys()
    given = terms(pattern, names)
    _refuse_ports(inventory, given)
    chosen = _chosen(inventory, given, sets)
    if not inventory.hosts:
        raise InputError("the inventory has no hosts yet")
    if not pattern.strip(", "):
        sentence = f"{pattern!r} matches no host; name some: --hosts gpu01,gpu02, --hosts @group or --hosts all"
        raise InputError(sentence, _OPTION)
    if not chosen:
        last = next((term for term in given if term.lstrip("!& ").removeprefix("@") in sets.keys() & set(RUN_SETS)), "")
        hint = f"; to select hosts of an earlier run, pass '{last}:RUN' ({Command('runs')} lists runs)" if last else ""
        raise InputError(f"{pattern!r} matches no host (hosts in the inventory: {len(inventory.hosts)}){hint}", _OPTION)
    hosts = [host for name, host in inventory.hosts.items() if name in chosen]
    mistakes = {str(mistake): mistake for host in hosts for mistake in host.mistakes}
    if mistakes and usable:
        raise InputErrors(list(mistakes.values()))
    if usable:
        _refuse_one_machine_twice(hosts)
    return hosts


def _refuse_one_machine_twice(hosts: Iterable[Host]) -> None:
    """Raise ``InputError`` if several of ``hosts`` are this machine, because changes to one of them would overwrite
    changes to another.
    """
    local = [host.name for host in hosts if host.local]
    if len(local) > 1:
        sentence = "have ansible_connection: local, so each of them is this machine; select one of them"
        raise InputError(f"{', '.join(local[:_NAMED])}{', …' * (len(local) > _NAMED)} {sentence}", _OPTION)


def fold(names: Iterable[str]) -> str:
    """Abbreviate host names to one text: ``gpu[01-03],login1``."""
    return _folded(tuple(names))


@lru_cache(maxsize=16)  # A report names the same hosts several times.
def _folded(names: tuple[str, ...]) -> str:
    from ClusterShell.NodeSet import NodeSet

    plain = {name: _FOLDABLE.fullmatch(name) is not None for name in names}
    folded = str(NodeSet.fromlist([name for name, simple in plain.items() if simple]))
    return ",".join(filter(None, [folded, *(name for name, simple in plain.items() if not simple)]))


def counted(names: Iterable[str]) -> str:
    """Return the abbreviated host names and their number. If the names are long, the number comes first.

    >>> counted(["gpu01"]), counted(["gpu01", "gpu02"])
    ('gpu01', 'gpu[01-02] (2 hosts)')
    >>> counted(f"node{number:03}" for number in range(1, 100, 2))[:28]
    '50 hosts (node[001,003,005,0'
    """
    head, below = headed(names)
    return f"{head} ({below})" if below else head


def headed(names: Iterable[str]) -> tuple[str, str]:
    """Return a heading for the hosts, and a second line with the host names if these are too long for the heading.

    >>> headed(["gpu01", "gpu02"])
    ('gpu[01-02] (2 hosts)', '')
    >>> headed(["login1", *(f"node{number:03}" for number in range(1, 100, 2))])[0]
    '51 hosts'
    """
    every = list(names)
    folded, number = fold(every), f"{len(every)} hosts"
    if len(every) == 1:
        return folded, ""
    return (f"{folded} ({number})", "") if len(folded) <= NAMED_CHARACTERS else (number, folded)


def named_by(inventory: Inventory, pattern: str) -> set[str]:
    """Return the hosts that ``pattern`` names, but not hosts that a group, set or wildcard selects."""
    plain = [term for term in terms(pattern, inventory.hosts.keys() | inventory.groups.keys()) if term[0] not in "!&@~"]
    plain = [term for term in plain if not set("*?") & set(term) and term.partition("[")[0] not in inventory.groups]
    return {host for term in plain for host in _matches(inventory, term, {})}


def terms(pattern: str, names: Iterable[str] = ()) -> list[str]:
    """Split ``pattern`` into terms at commas and colons, but not inside brackets or inside one of ``names``."""
    known = set(names)
    found: list[str] = []
    for piece in _split(pattern, ","):
        name = piece.lstrip("!& ")
        found += [piece] if name in known or is_ipv6(name) else _joined(_split(piece, ":"), known)
    return found


def _joined(parts: list[str], known: Set[str]) -> list[str]:
    found: list[str] = []
    for part in parts:
        whole = f"{found[-1].lstrip('!& ')}:{part}" if found else ""
        if whole.startswith("@") and part not in known and OF_A_RUN.fullmatch(whole):
            found[-1] += f":{part}"
        else:
            found.append(part)
    return found


def _split(text: str, sign: str) -> list[str]:
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[({") - (character in "])}")
        if depth <= 0 and character == sign:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _chosen(inventory: Inventory, given: list[str], sets: Mapping[str, set[str]]) -> set[str]:
    plain = [term for term in given if term[0] not in "!&"]
    if not plain and given:
        plain = ["all"]
    chosen: set[str] = set()
    for term in plain:
        chosen |= {term} if term in inventory.hosts else _matches(inventory, term, sets)
    for term in given:
        if term[0] == "&":
            chosen &= _matches(inventory, term[1:].strip(), sets)
    for term in given:
        if term[0] == "!":
            chosen -= _matches(inventory, term[1:].strip(), sets)
    return chosen


def _matches(inventory: Inventory, term: str, sets: Mapping[str, set[str]]) -> set[str]:
    if term.startswith("@"):
        return _group(inventory, term[1:], sets)
    if term.startswith("~"):
        hosts = _by_expression(inventory, term[1:])
    elif "[" in term:
        hosts = _with_brackets(inventory, term)
    else:
        hosts = _named(inventory, term)
        if hosts is None and not _SPECIAL & (set(term) - {"."}):
            raise _unknown(inventory, _names(term))
    if hosts is None:
        raise InputError(f"{term!r} matches no host and no group", _OPTION)
    return set(hosts)


def _named(inventory: Inventory, term: str) -> list[str] | None:
    special = _SPECIAL & set(term)
    groups = _alike(inventory.groups, term)
    hosts = [host for group in groups for host in inventory.groups[group].hosts]
    single = _alike(inventory.hosts, term) if not groups or special else []
    if not groups and not single:
        return [] if term == UNGROUPED else None
    return hosts + single


def _alike(names: Mapping[str, object], term: str) -> list[str]:
    if not _SPECIAL & (set(term) - {"."}):
        return [term] if term in names else []
    return [name for name in names if fnmatchcase(name, term)]


def _by_expression(inventory: Inventory, expression: str) -> list[str] | None:
    try:
        compiled = re.compile(expression)
    except (re.error, RecursionError, OverflowError) as error:
        raise InputError(f"'~{expression}' is not a regular expression: {error}", _OPTION) from error
    groups = [group for name, group in inventory.groups.items() if compiled.match(name)]
    hosts = [name for name in inventory.hosts if compiled.match(name)]
    return [host for group in groups for host in group.hosts] + hosts if groups or hosts else None


def _with_brackets(inventory: Inventory, term: str) -> list[str] | None:
    match = _SUBSCRIPT.fullmatch(term)
    within = _named(inventory, match["base"]) if match else None
    if match and within is not None and match["sign"] != "-":
        return _part(within, match, term)
    if "*" in term or "?" in term or re.search(r"\[[^0-9\]]*\]", term):
        return _named(inventory, term)
    if match and match["index"] and match["index"].startswith("-"):
        raise _unknown(inventory, [match["base"]])
    names = _names(term)
    missing = [name for name in names if name not in inventory.hosts]
    if not missing:
        return names
    if match and within is not None:
        return _part(within, match, term)
    raise _unknown(inventory, missing)


def _part(hosts: Sequence[str], match: re.Match[str], term: str) -> list[str]:
    numbers = [number for number in (match["index"], match["first"], match["last"]) if number]
    if max(map(len, numbers)) > _MAX_DIGITS:
        raise InputError(f"{term!r}: the number in brackets is too long", _OPTION)
    last = int(match["last"] or -1) if match["first"] else 0
    start = int(match["index"] or match["first"])
    if match["first"] and last:
        return list(hosts[start:] if last == -1 else hosts[start : last + 1])
    if not -len(hosts) <= start < len(hosts):
        raise InputError(f"{term!r}: {match['base']!r} has only {len(hosts)} hosts", _OPTION)
    return [hosts[start]]


def _group(inventory: Inventory, name: str, sets: Mapping[str, set[str]]) -> set[str]:
    if name in sets:
        return sets[name] & set(inventory.hosts)
    groups = _alike(inventory.groups, name)
    if not groups:
        raise InputError(f"unknown group {name!r}; {suggestion(name, [*inventory.groups, *sets])}", _OPTION)
    return {host for group in groups for host in inventory.groups[group].hosts}


def _unknown(inventory: Inventory, missing: Sequence[str]) -> InputError:
    known = [*inventory.hosts, *inventory.groups]
    hint = _otherwise_known(inventory, missing[0]) or suggestion(missing[0], known)
    return InputError(f"there is no host {fold(missing)} in the inventory; {hint}", _OPTION)


def _otherwise_known(inventory: Inventory, name: str) -> str:
    login, _, host = name.rpartition("@")
    if login and host in inventory.hosts:
        return f"set the login in the inventory (ansible_user), and use --hosts {host}"
    found = [known.name for known in inventory.hosts.values() if known.address == name]
    return f"it is the address of {fold(found)}; use --hosts {fold(found)}" if found else ""


def _refuse_ports(inventory: Inventory, given: Sequence[str]) -> None:
    """Raise ``InputError`` for a term ``host:port``, which would be split at the colon into two terms."""
    for host, port in pairwise(given):
        if host in inventory.hosts and port.isdecimal() and port not in inventory.hosts:
            sentence = (
                f"{host}:{port}: --hosts takes no port; set ansible_port in the inventory, and use --hosts {host}"
            )
            raise InputError(sentence, _OPTION)


def _names(term: str) -> list[str]:
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    if not _TERM.fullmatch(term):
        parts = [part for part in re.split(r"[;:\s]+", term) if part]
        meant = f": {','.join(parts)}" if len(parts) > 1 else ""
        sentence = f"{term!r} is not a host, a group or a range such as gpu[01-08]; separate terms with commas"
        raise InputError(f"{sentence}{meant}", _OPTION)
    if "[" not in term and "]" not in term:
        return [term]
    size = 1
    for first, last in _SPAN.findall(term):
        if max(len(first), len(last)) > _MAX_DIGITS:
            raise InputError(f"{term!r}: the number in brackets is too long", _OPTION)
        size *= max(1, int(last) - int(first) + 1)
    if size > MAX_NAMES:
        raise InputError(f"{term!r} expands to {size} hosts; the limit is {MAX_NAMES}", _OPTION)
    try:
        return list(NodeSet(_SPAN.sub(r"\1-\2", term), resolver=RESOLVER_NOGROUP))
    except (NodeSetException, ValueError) as error:
        raise InputError(f"{term!r} is not a range such as gpu[01-08,12]: {error}", _OPTION) from error
