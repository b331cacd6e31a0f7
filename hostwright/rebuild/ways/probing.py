"""Probing of a host over SSH and through its BMC, before the decision on its rebuild."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from hostwright.audit.auditing import ANSWERS_TIMEOUT_S, judged
from hostwright.audit.failures import catalogue
from hostwright.audit.judging.audited import audit_probes
from hostwright.common.errors import HostError, Stopped
from hostwright.plan.model import Facts, Probe
from hostwright.plan.observing import ask
from hostwright.plan.planning import disturbed, make_plan
from hostwright.plan.probing import ordered
from hostwright.plan.targets import TargetHost
from hostwright.rebuild.bmc import Controller
from hostwright.rebuild.rebuild import Rebuild, Way
from hostwright.rebuild.ways.diagnosis import LATELY, Diagnosis, Power, Reinstall, reach_of
from hostwright.transport.root.rootshell import RootShell

#: probe for the boot ID (proc(5)); each boot has another ID
BOOT_ID = Probe("cat /proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Ways:
    """Means to rebuild a host: the function that opens its BMC (``None`` without a BMC), and the method to reinstall
    it.
    """

    open_bmc: Callable[[], Controller] | None
    reinstall: Reinstall


@dataclass(frozen=True, slots=True)
class ProbedHost:
    """Diagnosis of a host, with the ``facts`` behind it.

    If the host could not be probed, ``facts`` is ``None`` and ``error`` is the reason.
    """

    diagnosis: Diagnosis
    facts: Facts | None = None
    error: HostError | None = None


def probe_host(
    target: TargetHost,
    connect: Callable[[], RootShell],
    ways: Ways,
    *,
    history: tuple[Rebuild, ...] = (),
    tried: tuple[Way, ...] = (),
) -> ProbedHost:
    """Probe the host ``target`` over SSH and through its BMC; errors become a part of the result.

    ``history`` are earlier rebuilds of this host, ``tried`` the methods of the current rebuild so far. Raises
    ``Stopped`` if the operator stops the run.
    """
    facts, error = _facts(target, connect)
    power, bmc_sentence = _power(ways)
    at = datetime.now(UTC)
    audit = judged(target, facts, at) if facts is not None else None
    plan = make_plan(target.desired, facts) if facts is not None else None
    hit = disturbed(target.desired, plan, facts) if plan is not None and facts is not None and plan.disturbs else None
    diagnosis = Diagnosis(
        host=target.name,
        reach=reach_of(error),
        sentence=error.sentence if error else "",
        power=power,
        power_sentence=bmc_sentence,
        audit=audit,
        plan=plan,
        boot_id=facts[BOOT_ID].strip() if facts is not None and BOOT_ID in facts else "",
        history=tuple(rebuild for rebuild in history if rebuild.at >= at - LATELY),
        tried=tried,
        can_reinstall=ways.reinstall,
        treatments=catalogue(target.all_roles).treatments,
        running=target.occupancy.at_work(facts, boots=False).everyone if facts is not None else (),
        disturbed=hit.everyone if hit is not None else (),
    )
    return ProbedHost(diagnosis, facts, error)


def _facts(target: TargetHost, connect: Callable[[], RootShell]) -> tuple[Facts | None, HostError | None]:
    probes = ordered([BOOT_ID, *audit_probes(target)])
    try:
        with connect() as shell:
            return ask(shell, probes, timeout_s=ANSWERS_TIMEOUT_S), None
    except Stopped:
        raise
    except HostError as error:
        return None, error


def _power(ways: Ways) -> tuple[Power | None, str]:
    """Return the power state that the BMC reports, and the error text or an empty text.

    A host that answers is queried too: if the BMC reports "off", the inventory names the wrong BMC.
    """
    if ways.open_bmc is None:
        return None, ""
    try:
        with ways.open_bmc() as bmc:
            return cast(Power, bmc.power()), ""
    except HostError as error:
        return "unknown", error.sentence
