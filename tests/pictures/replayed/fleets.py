"""What is replaced of ``hostwright.fleet.Fleet`` as a whole: verbs of which only the view matters here."""

from __future__ import annotations

from typing import Any

from tests.pictures.hosts import KINDS
from tests.pictures.replayed.changing import operator_lock

SILENT = "its BMC at https://127.0.0.1:9 does not answer: connection refused"


def power(_self: Any, targets: Any, order: Any, **_: Any) -> Any:
    """``Fleet.power``."""
    from hostwright.apply.rollout.rollout import Results
    from hostwright.apply.run import RunResults
    from hostwright.rebuild.bmc import BmcError, Power, Status
    from hostwright.rebuild.orders import Powered

    values, errors = [], []
    for number, target in enumerate(targets):
        if KINDS[target.name] == "unreachable":
            errors.append(BmcError(target.name, SILENT))
            continue
        state, health, boot = {"off": Power.OFF}.get(order.name, Power.ON), "OK", ""
        if KINDS[target.name] == "failed":
            state, health, boot = Power.OFF, "Critical", "Pxe (Once)"
        status = Status(state, "PowerEdge R7525", "Dell Inc.", f"7XK{number:04}", "2.12.4", health, boot)
        console = f"ipmitool -I lanplus -H bmc-{target.name} -U admin sol activate"
        values.append(Powered(target.name, order.name, Power.ON, status, (), console))
    return RunResults("", Results(tuple(values), tuple(errors)), int(bool(errors)))


def locks(_self: Any, targets: Any, **_: Any) -> Any:
    """``Fleet.locks``."""
    return _locks(targets, lambda lock: (lock, lock), {"locked"})


def lock(_self: Any, targets: Any, reason: str, *_: Any, **__: Any) -> Any:
    """``Fleet.lock``."""
    return _locks(targets, lambda lock: (lock, None), set(KINDS.values()), reason)


def unlock(_self: Any, targets: Any, **_: Any) -> Any:
    """``Fleet.unlock``."""
    return _locks(targets, lambda lock: (None, lock), {"locked"})


def _locks(targets: Any, pair: Any, which: Any, reason: str = "RMA of card 3") -> Any:
    from hostwright.apply.locking.hostlocks import HostLocks
    from hostwright.apply.rollout.rollout import Results
    from hostwright.common.errors import Unreachable

    values, errors = [], []
    for target in targets:
        if KINDS[target.name] == "unreachable":
            sentence = "127.0.0.1:4711 refuses the connection (login as root): is sshd running there?"
            errors.append(Unreachable(target.name, sentence))
            continue
        now, before = pair(operator_lock(target.name, reason)) if KINDS[target.name] in which else (None, None)
        values.append(HostLocks(target.name, now, before, None))
    return Results(tuple(values), tuple(errors))


def removal(fleet: Any, targets: Any) -> Any:
    """``Fleet.removal``: nobody has a layer that the inventory does not name."""
    from hostwright.apply.rollout.removal import Former, Formers, Removal

    return Removal(fleet, Formers({target.name: Former(target.name) for target in targets}, {}))


def ways_back(_self: Any, targets: Any, _to: str = "") -> Any:
    """``Fleet.ways_back``: what failed was never verified."""
    from hostwright.apply.rollout.rollback import WayBack
    from hostwright.apply.rollout.rollout import Results
    from hostwright.common.errors import Refused

    none = tuple(
        Refused(target.name, "it has no release record: it was never verified, and there is nothing to go back to")
        for target in targets
        if KINDS[target.name] in {"failed", "bare"}
    )
    able = (target for target in targets if KINDS[target.name] not in {"failed", "bare"})
    return Results(tuple(WayBack(target, target, "2026-11-20T09:12:00+00:00") for target in able), none)
