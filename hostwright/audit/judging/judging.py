"""Compute the audit of a host from its facts (answers to probes).

All functions are pure: the same facts can be judged again against another stack. If a state is not as desired, either
the host changed (drift) or the desired state did (intent). Puppet calls these corrective and intentional changes. The
host's release record distinguishes the two: it contains a hash of each state that was as desired at the end of the last
good run. Records of earlier versions of Hostwright have other hashes, so that drift and intent cannot be distinguished
until the next provisioning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property, partial
from typing import Any

from hostwright.audit.fleetaudit import (
    CARDS,
    DRIVER_OF_CARDS,
    GPU_LAYER,
    Deviation,
    HostAudit,
    Layer,
    LayerStatus,
    NotChecked,
    Reading,
    ReleaseRecord,
    Why,
    worst,
)
from hostwright.audit.found.reading import cut_short
from hostwright.audit.hardware.known import NOTHING_KNOWN, KnownHardware
from hostwright.audit.judging.alike import NOT_ASKED, OPEN, Alike, alike, all_readings, events_of, gpus_of
from hostwright.audit.judging.audited import AuditScope, audited
from hostwright.audit.judging.context import AuditContext, Unread
from hostwright.audit.readings.answers import RELEASE_LAYER
from hostwright.audit.readings.changed import changed_since
from hostwright.common.canonical import Same
from hostwright.common.errors import NOT_IN_TIME, Finding, NotAnswered
from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.facts.expected import read_expected_gpus
from hostwright.plan.facts.memory import Memory
from hostwright.plan.host import release
from hostwright.plan.host.newrelease import desired_sha256, state_sha256
from hostwright.plan.model import Facts, Planned, Refusal, Resource
from hostwright.plan.planning import notes_on, off_roles
from hostwright.plan.roles.software import Software
from hostwright.plan.targets import TargetHost
from hostwright.resources.packages.packages import dpkg_table, named_like
from hostwright.stack.ages import Advisories, Aged, aged, day_of, numbers


@dataclass(frozen=True)
class LastGood:
    """The entry of a role in a host's release record, written at the end of the last good run."""

    role: DesiredRole
    entry: Mapping[str, Any] | None  #: entry of the role in the release record; ``None`` without an entry
    memory: Memory = field(default_factory=Memory)  #: cache of results, shared by all hosts of a run

    def why(self, resource: Resource | None = None) -> Why:
        """Return why the state ``resource`` of the role is not as desired; without ``resource``, why a value other than
        a state differs.

        A state has drifted if the record contains the hash of the state. Any other state is new in the stack.
        """
        if self.entry is None:
            return "new"
        if "desired" not in self.entry:
            return "differs"
        known = self.memory.kept("hashes", Same(self.role), lambda: Hashes(self.role))
        if self.entry["desired"] == known.role:
            return "drift"
        states = self.entry.get("states")
        # Early versions of Hostwright wrote records without states.
        if resource is None or not isinstance(states, list):
            return "intent"
        return "drift" if known.of(resource) in states else "intent"


class Hashes:
    """The hashes of a role's states, as in release records. Each hash is computed on first use."""

    def __init__(self, role: DesiredRole):
        self._role, self._states = role, dict[Same[Resource], str]()

    @cached_property
    def role(self) -> str:
        """The hash of all states of the role together."""
        return desired_sha256(self._role)

    def of(self, resource: Resource) -> str:
        """Return the hash of the state ``resource``."""
        key = Same(resource)
        if key not in self._states:
            self._states[key] = state_sha256(resource)
        return self._states[key]


def last_good(role: DesiredRole, record: Mapping[str, Any], memory: Memory | None = None) -> LastGood:
    """Return the entry for ``role`` in the release record ``record``. A damaged entry is treated as missing."""
    entry = record.get("roles", {}).get(role.name)
    return LastGood(role, entry if isinstance(entry, dict) else None, memory or Memory())


def shown(record: Mapping[str, Any]) -> ReleaseRecord | None:
    """Return the main fields of the release record ``record`` for reports; ``None`` if the record is empty."""
    if not record:
        return None
    return ReleaseRecord(*(str(record.get(key, "")) for key in ("stack", "at", "run", "operator")))


Found = Finding | NotChecked


def judge(target: TargetHost, facts: Facts, at: datetime, known_before: KnownHardware = NOTHING_KNOWN) -> HostAudit:
    """Compute the audit of the host ``target`` from ``facts``, which were read at the time ``at``.

    ``known_before`` is the hardware that earlier audits found. Hosts with equal facts share all results that do not
    depend on the time.
    """
    looks_at = audited(target)
    hardware = replace(known_before, gpus=read_expected_gpus(target.host))
    work = partial(_judged, target, looks_at, facts, at, hardware)
    audit = target.memory.kept("audit", (Same(looks_at), Same(facts), at, hardware), work)
    return replace(audit, host=target.name, groups=target.host.groups)


def _judged(target: TargetHost, looks_at: AuditScope, facts: Facts, at: datetime, hardware: KnownHardware) -> HostAudit:
    """Compute the audit of a host, without the host's name. Hosts with the same desired state, facts and time share the
    result.
    """
    memory = target.memory
    if refusal := memory.judged("refusal", facts, release.refusal):
        return unread(target, refusal, at)
    wanted, named = target.desired_of_all, looks_at.named
    first = AuditContext(wanted, target.variables, facts, {}, at, looks_at.cards, named, hardware, memory)
    known = alike(first, looks_at)
    ctx = replace(first, changes=known.changes)
    read = all_readings(looks_at, ctx) if known.readings is OPEN else known.readings
    found = [_repairable(one, known.changes) for one in known.found(ctx, looks_at.rules)]
    record = memory.judged("recorded", facts, _record)
    deviations = tuple(_deviations(target, known, read, record))
    not_checked = (*_not_checked(known, found), *_unread_cards(ctx, looks_at))
    not_checked += tuple(cut_short(looks_at.finders, facts, RELEASE_LAYER))
    not_checked += tuple(_others_late(target, facts, not_checked)) if facts.late else ()
    findings = tuple(one for one in found if isinstance(one, Finding))
    names = (*known.changes, GPU_LAYER)
    key = (names, deviations, findings, not_checked)
    layers = memory.kept("layers", key, lambda: tuple(_layer(name, *key[1:]) for name in names))
    return HostAudit(
        host=target.name,
        stack=target.stack.name,
        at=_iso(at),
        status=worst(layer.status for layer in layers),
        layers=layers,
        readings=read,
        deviations=deviations,
        findings=findings,
        not_checked=not_checked,
        gpus=gpus_of(ctx) if known.gpus is OPEN else known.gpus,
        xids=events_of(ctx) if known.events is OPEN else known.events,
        record=shown(record),
        groups=target.host.groups,
        stand_ins=target.stand_ins,
        notes=_notes(target, facts, at),
        changed=memory.judged("changed", facts, changed_since),
        aged=aged_on(ctx),
    )


def unread(target: TargetHost, sentence: str, at: datetime, lead: str = "") -> HostAudit:
    """Return the audit of the host ``target``, which could not be read because of the error ``sentence``.

    ``lead`` is the verb of the command to run next.
    """
    layers = tuple(Layer(name, "unread") for name in (*(role.name for role in target.roles), GPU_LAYER))
    return HostAudit(
        target.name, target.stack.name, _iso(at), "unread", sentence, layers,
        groups=target.host.groups, stand_ins=target.stand_ins, lead=lead,
    )  # fmt: skip


def unprobed(skipped: NotChecked) -> bool:
    """Return whether ``skipped`` was not checked because probes were not run or timed out. The state of the layer is
    then unknown.
    """
    of_cards = skipped.check in (CARDS, DRIVER_OF_CARDS)
    return of_cards or skipped.reason == NOT_ASKED or skipped.reason.startswith(NOT_IN_TIME)


def _repairable(found: Found, changes: Mapping[str, tuple[Planned, ...]]) -> Found:
    refused = isinstance(found, Finding) and any(isinstance(one, Refusal) for one in changes.get(found.layer, ()))
    return replace(found, provision=False) if isinstance(found, Finding) and refused else found


def _deviations(
    target: TargetHost, known: Alike, read: Iterable[Reading], record: Mapping[str, Any]
) -> Iterator[Deviation]:
    differing = [reading for reading in read if reading.differs]
    for role in target.desired.roles if differing or any(known.changes.values()) else ():
        good, differs = last_good(role, record, target.memory), known.states[role.name]
        for change, resource in zip(differs.changes, differs.states, strict=True):
            yield Deviation(role.name, change.what, change.have, change.want, good.why(resource))
    for reading in differing:
        if reading.layer in known.changes and not known.changes[reading.layer]:
            role = next(role for role in target.desired.roles if role.name == reading.layer)
            why = last_good(role, record, target.memory).why()
            yield Deviation(reading.layer, reading.name, reading.have or "absent", reading.want or "absent", why)


def _not_checked(known: Alike, found: Iterable[Found]) -> Iterator[NotChecked]:
    for differs in known.states.values():
        yield from differs.not_checked
    yield from (one for one in found if isinstance(one, NotChecked))


def _unread_cards(ctx: AuditContext, looks_at: AuditScope) -> Iterator[NotChecked]:
    """Report a failed check if the GPUs on the PCI bus could not be read.

    Nothing is reported for a host that should have no GPUs and has no GPU driver.
    """
    try:
        if looks_at.judges_cards(ctx.facts) and any(cards.on_bus(ctx.facts) for cards in ctx.cards):
            _ = ctx.gpus
    except KeyError:  # The PCI bus was not probed.
        return
    except (Unread, NotAnswered) as error:
        driven = any(cards.driven(ctx.facts) for cards in ctx.cards)
        yield NotChecked(GPU_LAYER, CARDS if driven else DRIVER_OF_CARDS, str(error))


def _others_late(target: TargetHost, facts: Facts, not_checked: Iterable[NotChecked]) -> Iterator[NotChecked]:
    named = {skipped.reason for skipped in not_checked}
    of_cards = {*target.occupancy.probes, *(probe for part in audited(target).cards for probe in part.probes)}
    for probe, answer in facts.late.items():
        reason = str(NotAnswered(probe.script, answer.late_s))
        if reason not in named:
            yield NotChecked(GPU_LAYER if probe in of_cards else RELEASE_LAYER, "probe", reason)


def _record(facts: Facts) -> Mapping[str, Any]:
    return release.read(facts) if release.RELEASE in facts else {}


def _layer(
    name: str, deviations: Iterable[Deviation], findings: Iterable[Finding], not_checked: Iterable[NotChecked]
) -> Layer:
    whys = {deviation.why for deviation in deviations if deviation.layer == name}
    graves = {finding.grave for finding in findings if finding.layer == name}
    unread = any(skipped.layer == name and unprobed(skipped) for skipped in not_checked)
    order: tuple[tuple[LayerStatus, bool], ...] = (
        ("drift", "drift" in whys),
        ("differs", "differs" in whys),
        ("intent", "intent" in whys),
        ("new", "new" in whys),
        ("failing", True in graves),
        ("unread", unread),
        ("warning", False in graves),
    )
    return Layer(name, next((status for status, so in order if so), "desired"))


def _notes(target: TargetHost, facts: Facts, now: datetime) -> tuple[str, ...]:
    off = off_roles(target.desired_of_all, facts, target.memory)
    try:
        return (*notes_on(facts, now, target.memory), *off)
    except KeyError:  # The locks were not probed, or the probe timed out.
        return off


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="seconds")


def aged_on(ctx: AuditContext) -> tuple[Aged, ...]:
    """Return the advisories that apply to software versions on the host. Software that cannot be read is ignored."""
    known = ctx.desired.advisories
    if not known.products:
        return ()
    work = partial(installed, ctx.desired, ctx.memory)
    found = ctx.memory.judged(("installed products", Same(ctx.desired)), ctx.facts, work)
    today = day_of(ctx.now)
    return ctx.memory.kept("aged", (Same(known), found, today), lambda: _aged(known, found, today))


def _aged(known: Advisories, found: Iterable[tuple[str, str]], today: date) -> tuple[Aged, ...]:
    return tuple(dict.fromkeys(one for name, version in found for one in aged(known, {name: version}, today)))


def installed(desired: Desired, memory: Memory, facts: Facts) -> tuple[tuple[str, str], ...]:
    """Return the products on the host for which advisories exist, as pairs of product and version."""
    products = desired.advisories.products
    known = tuple(pattern for product in products.values() for pattern in product.packages)
    there = [(one.name, one.version) for one in _software(desired, memory, facts) if one.version]
    with suppress(KeyError, NotAnswered):
        there += [(row.base, row.version) for row in dpkg_table(facts).values() if row.present]
    found: dict[tuple[str, tuple[int, ...]], tuple[str, str]] = {}
    for package, version in there:
        if named_like(package, known):
            name = next(name for name, product in products.items() if named_like(package, product.packages))
            # The version of a package may have a suffix, so only the numbers are compared.
            found.setdefault((name, numbers(version)), (name, version))
    return tuple(found.values())


def _software(desired: Desired, memory: Memory, facts: Facts) -> Iterator[Software]:
    for state in (state for role in desired.roles for state in role.resources):
        for piece in memory.judged(("software", Same(state)), facts, partial(_pieces, state)):
            yield from (piece, *piece.parts)


def _pieces(state: Resource, facts: Facts) -> tuple[Software, ...]:
    try:
        return tuple(state.software(facts))
    except (KeyError, NotAnswered):
        return ()
