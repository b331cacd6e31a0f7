"""The values that are read on a host, and what the stack wants of each. Pure.

A value that was not probed gives no reading; one that was probed and is absent gives an empty reading.
"""

from __future__ import annotations

from hostwright.audit.fleetaudit import GPU_LAYER, Reading
from hostwright.audit.judging.context import AuditContext, Unread
from hostwright.audit.readings.answers import RELEASE_LAYER, asked_for, meant, read_answers
from hostwright.audit.readings.cards import gpu_readings
from hostwright.audit.readings.program import COMPLETE
from hostwright.plan.model import Probe
from hostwright.plan.roles.auditvalue import PRODUCT, AuditValue

Answers = dict[str, str]


def readings(ctx: AuditContext, values: tuple[AuditValue, ...]) -> tuple[Reading, ...]:
    """The readings of a host in the layers that are audited. ``values`` are those of all its roles."""
    layers = {*ctx.changes, GPU_LAYER, RELEASE_LAYER}
    asked, probes = asked_for(ctx.stack.name, values)
    user, *more = (_answers(ctx, probe) for probe in probes)
    root = more[0] if more else {}
    read = [_reading(value, user, root) for value in sorted(meant(asked, user), key=_derived)]
    read += gpu_readings(ctx, user.get(PRODUCT.line, ""))
    return tuple(reading for reading in read if reading is not None and reading.layer in layers)


def _derived(value: AuditValue) -> bool:
    return value.derive is not None


def _answers(ctx: AuditContext, probe: Probe) -> Answers:
    """The answers of a program, as far as it got; empty where it was not run."""
    try:
        return read_answers(ctx.answer(probe).text)
    except Unread:
        return {}


def _reading(value: AuditValue, user: Answers, root: Answers) -> Reading | None:
    """The reading of a value. A missing line is an empty value if the program ran to its end, else no reading."""
    answers = root if value.root else user
    if value.where.line not in answers and COMPLETE not in answers:
        return None
    read = answers.get(value.where.line, "")
    have = value.derive(read) if value.derive else read
    among = user.get(value.among.line, "") if value.among else ""
    return None if have is None else Reading(value.layer, value.name, have, value.want, among)
