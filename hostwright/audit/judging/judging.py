"""From one host's facts to its audit. Pure: the same facts can be judged again against another stack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from hostwright.audit.failures import Catalogue, catalogue
from hostwright.audit.fleetaudit import (
    GPU_LAYER,
    Deviation,
    HostAudit,
    Layer,
    LayerStatus,
    NotChecked,
    Reading,
    worst,
)
from hostwright.audit.hardware.gpu import Gpu, GpuEvent
from hostwright.audit.judging.drift import last_good, shown
from hostwright.audit.judging.look import Cards, Look, Unread
from hostwright.audit.readings.answers import RELEASE_LAYER, all_values, value_probes
from hostwright.audit.readings.host import readings
from hostwright.common.errors import NOT_IN_TIME, Finding, NotAnswered
from hostwright.plan.desired import DesiredRole
from hostwright.plan.host import release
from hostwright.plan.member import Member
from hostwright.plan.model import Facts, Planned, Probe, Resource
from hostwright.plan.planning import notes_on, off_roles
from hostwright.plan.probing import ordered

EVIDENCE_LINES = 5  #: of a finding: enough to recognise it, not the whole log
NOT_ASKED = "not probed: the audit ran without sudo, or these facts are older than this state"


def audit_probes(member: Member, *, sudo: bool = True) -> tuple[Probe, ...]:
    """Every probe of an audit of this host, each once; without ``sudo`` those that need no root.

    Failure rules and values are those of the host's own roles. Cards, and whatever is using the host, are probed on
    every host.
    """
    rules = (probe for rule in rules_of(member).signed if rule.sign for probe in rule.sign.probes)
    cards = (probe for part in cards_of(member) for probe in part.probes)
    values = value_probes(all_values(member.stack.name, member.audit_values))
    probes = ordered([*member.desired.probes(), *cards, *values, *rules])
    return probes if sudo else tuple(probe for probe in probes if not probe.root)


def rules_of(member: Member) -> Catalogue:
    """The failure rules of the roles that the host has, including those that ``--roles`` leaves out."""
    own = member.of_host or member.roles
    return catalogue(tuple(role for role in member.all_roles if role in own))


def cards_of(member: Member) -> tuple[Cards, ...]:
    """How cards are read, by every role that there is: a host has its cards whatever its roles are."""
    parts = (role.part("gpus") for role in member.all_roles)
    return tuple(part.CARDS for part in parts if part is not None)


def judge(member: Member, facts: Facts, at: datetime) -> HostAudit:
    """The audit of a host by these facts, which were read ``at`` that time."""
    if refusal := release.refusal(facts):
        return unread(member, refusal, at)
    record = release.read(facts) if release.RELEASE in facts else {}
    not_checked: list[NotChecked] = []
    deviations: list[Deviation] = []
    changes: dict[str, tuple[Planned, ...]] = {}
    for role in member.desired.roles:
        differing = tuple(_differences(role, facts, record, not_checked))
        changes[role.name] = tuple(change for change, _ in differing)
        deviations += (deviation for _, deviation in differing)
    known = rules_of(member)
    look = Look(member.desired, member.variables, facts, changes, at, cards_of(member), known.named)
    read = readings(look, member.audit_values)
    deviations += _by_reading(member, read, deviations, record)
    findings = tuple(_findings(known, look, not_checked))
    not_checked += tuple(_others_late(member, facts, not_checked))
    layers = tuple(_layer(name, deviations, findings, not_checked) for name in (*changes, GPU_LAYER))
    return HostAudit(
        host=member.name,
        stack=member.stack.name,
        at=_iso(at),
        status=worst(layer.status for layer in layers),
        layers=layers,
        readings=read,
        deviations=tuple(deviations),
        findings=findings,
        not_checked=tuple(not_checked),
        gpus=_gpus(look),
        xids=_events(look),
        record=shown(record),
        groups=member.host.groups,
        stand_ins=member.stand_ins,
        notes=_notes(member, facts, at),
    )


def unread(member: Member, sentence: str, at: datetime) -> HostAudit:
    """The audit of a host that could not be read."""
    layers = tuple(Layer(name, "unread") for name in (*(role.name for role in member.roles), GPU_LAYER))
    return HostAudit(
        member.name, member.stack.name, _iso(at), "unread", sentence, layers,
        groups=member.host.groups, stand_ins=member.stand_ins,
    )  # fmt: skip


def _differences(
    role: DesiredRole, facts: Facts, record: Mapping[str, Any], not_checked: list[NotChecked]
) -> Iterator[tuple[Planned, Deviation]]:
    """What a role would change, and why; states whose probes were not run are added to ``not_checked``."""
    good = last_good(role, record)
    skipped: dict[str, str] = {}
    for resource in role.resources:
        if not all(probe in facts for probe in resource.probes()):
            skipped.setdefault(type(resource).__name__, _why_not(resource, facts))
        elif change := resource.plan(facts):
            yield change, Deviation(role.name, change.what, change.have, change.want, good.why(resource))
    not_checked += (NotChecked(role.name, name, reason) for name, reason in skipped.items())


def _why_not(resource: Resource, facts: Facts) -> str:
    """Why a state could not be checked: a probe of it hung, or was not asked."""
    late = [
        str(NotAnswered(probe.script, facts.late[probe].late_s)) for probe in resource.probes() if probe in facts.late
    ]
    return late[0] if late else NOT_ASKED


def unprobed(skipped: NotChecked) -> bool:
    """Whether its probes were not asked or hung: then its layer is not known."""
    return skipped.reason == NOT_ASKED or skipped.reason.startswith(NOT_IN_TIME)


def _others_late(member: Member, facts: Facts, not_checked: Iterable[NotChecked]) -> Iterator[NotChecked]:
    """Probes that hung and belong to no state and no rule: of the cards and their users, of values, of the engine."""
    named = {skipped.reason for skipped in not_checked}
    of_cards = {*member.occupancy.probes, *(probe for part in cards_of(member) for probe in part.probes)}
    for probe, answer in facts.late.items():
        reason = str(NotAnswered(probe.script, answer.late_s))
        if reason not in named:
            yield NotChecked(GPU_LAYER if probe in of_cards else RELEASE_LAYER, "probe", reason)


def _by_reading(
    member: Member, read: Iterable[Reading], deviations: Iterable[Deviation], record: Mapping[str, Any]
) -> Iterator[Deviation]:
    """Values that differ from the stack in layers where no state does, which is all that is known where none was
    probed.
    """
    known = {deviation.layer for deviation in deviations}
    roles = {role.name: role for role in member.desired.roles}
    for reading in read:
        if reading.differs and reading.layer in roles and reading.layer not in known:
            why = last_good(roles[reading.layer], record).why()
            yield Deviation(reading.layer, reading.name, reading.have or "absent", reading.want or "absent", why)


def _findings(known: Catalogue, look: Look, not_checked: list[NotChecked]) -> Iterator[Finding]:
    for rule in known.signed:
        if rule.sign is None or rule.sign.layer not in (*look.changes, GPU_LAYER):
            continue
        try:
            evidence = tuple(_first(known.evidence(rule, look)))
        except (Unread, NotAnswered) as error:
            not_checked.append(NotChecked(rule.sign.layer, rule.name, str(error)))
            continue
        if evidence:
            yield rule.finding(evidence)


def _first(lines: Iterable[str]) -> list[str]:
    """The first lines of the evidence, and how many follow."""
    evidence = list(lines)
    more = len(evidence) - EVIDENCE_LINES
    return [*evidence[:EVIDENCE_LINES], f"… and {more} more"] if more > 0 else evidence


def _layer(
    name: str, deviations: Iterable[Deviation], findings: Iterable[Finding], not_checked: Iterable[NotChecked]
) -> Layer:
    """The status of one layer. A state that could not be checked and a probe that hung make it unread; a rule that
    could not be checked for another reason does not.
    """
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


def _notes(member: Member, facts: Facts, now: datetime) -> tuple[str, ...]:
    off = off_roles(member.desired, facts)
    try:
        return (*notes_on(facts, now), *off)
    except KeyError:  # its locks were not probed, or did not answer
        return off


def _events(look: Look) -> tuple[GpuEvent, ...]:
    try:
        return look.gpu_events
    except (Unread, NotAnswered):
        return ()


def _gpus(look: Look) -> tuple[Gpu, ...]:
    try:
        return look.gpus
    except (Unread, NotAnswered):
        return ()


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="seconds")
