"""What rebuilds end or overwrite, and that an operator agrees to it before any host is changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hostwright.apply.rollout.consent import Ask, folded, unasked
from hostwright.common.request import Request
from hostwright.inventory.patterns import counted
from hostwright.rebuild.ways.ways import Decision

#: what a rebuild does on the ways that it asks about
_WAYS = {
    "reinstall": "installs a new operating system on {}: their disks are overwritten",
    "relayer": "removes all layers from {}, and provisions them again",
    "power cycle": "power-cycles or reboots {}",
}


def consent(decisions: Mapping[str, Decision], request: Request, ask: Ask | None) -> None:
    """Ask once about what goes beyond repair. Without ``ask``, or with ``--yes``, nobody is asked.

    Raises what ``ask`` raises, and ``InputError`` where disks may be overwritten and nobody agrees to that.
    """
    if request.yes:
        return
    if ask is None:
        refuse_overwriting(overwritten(decisions), request, ask)
    else:
        ask([*consequences(decisions)], len(decisions))


def refuse_overwriting(hosts: Iterable[str], request: Request, ask: Ask | None) -> None:
    """Raise ``InputError`` if a rebuild may overwrite disks of these hosts and nobody agrees or can be asked."""
    if (names := [*hosts]) and ask is None and not request.yes:
        what = f"this rebuild may install a new operating system, which overwrites disks ({counted(names)})"
        raise unasked(what)


def consequences(decisions: Mapping[str, Decision]) -> Iterator[str]:
    """What a rebuild does beyond repair, and where a new operating system may follow."""
    hosts_by_way: dict[str, list[str]] = {}
    for host, decision in decisions.items():
        if decision.refusal:
            continue
        if decision.way in _WAYS:
            hosts_by_way.setdefault(_WAYS[decision.way], []).append(host)
        if "reinstall" in decision.escalation:
            hosts_by_way.setdefault(f"if that does not help, {_WAYS['reinstall']}", []).append(host)
    return folded(hosts_by_way)


def overwritten(decisions: Mapping[str, Decision]) -> list[str]:
    """The hosts whose disks a rebuild overwrites, or may overwrite."""
    ways = {host: (each.way, *each.escalation) for host, each in decisions.items() if not each.refusal}
    return [host for host, each in ways.items() if "reinstall" in each]
