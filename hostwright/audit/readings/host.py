"""The values that are read on a host, and what is wanted of each. Pure.

What could not be asked gives no reading; what was looked for and is not there is a reading of nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from hostwright.audit.fleetaudit import GPU_LAYER, Reading
from hostwright.audit.judging.look import Look, Unread
from hostwright.audit.readings.answers import RELEASE_LAYER, all_values, meant, read_answers, value_probes
from hostwright.audit.readings.cards import gpu_readings
from hostwright.audit.readings.program import COMPLETE
from hostwright.plan.model import Probe
from hostwright.plan.roles.auditvalue import PRODUCT, AuditValue

Answers = dict[str, str]


def readings(look: Look, values: Iterable[AuditValue]) -> tuple[Reading, ...]:
    """The readings of a host, of the layers that are looked at. ``values`` are those of all its roles."""
    layers = {*look.changes, GPU_LAYER, RELEASE_LAYER}
    asked = all_values(look.stack.name, values)
    user, *more = (_answers(look, probe) for probe in value_probes(asked))
    root = more[0] if more else {}
    read = [_reading(value, user, root) for value in sorted(meant(asked, user), key=_derived)]
    read += gpu_readings(look, user.get(PRODUCT.line, ""))
    return tuple(reading for reading in read if reading is not None and reading.layer in layers)


def _derived(value: AuditValue) -> bool:
    return value.derive is not None


def _answers(look: Look, probe: Probe) -> Answers:
    """What a program said, as far as it came; nothing when it was not asked."""
    try:
        return read_answers(look.answer(probe).text)
    except Unread:
        return {}


def _reading(value: AuditValue, user: Answers, root: Answers) -> Reading | None:
    """What a value's line holds. A line that is not there means nothing there, if the program came to its end."""
    answers = root if value.root else user
    if value.where.line not in answers and COMPLETE not in answers:
        return None
    read = answers.get(value.where.line, "")
    have = value.derive(read) if value.derive else read
    among = user.get(value.among.line, "") if value.among else ""
    return None if have is None else Reading(value.layer, value.name, have, value.want, among)
