"""Convert the values read on a host to readings, each with the value in the stack. All functions are pure.

A value that was not probed gives no reading. An absent value gives an empty reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from hostwright.audit.fleetaudit import GPU_LAYER, Reading
from hostwright.audit.hardware.gpu import Gpu
from hostwright.audit.hardware.gpucolumns import GPU_COLUMNS, Text
from hostwright.audit.judging.context import AuditContext, Unread
from hostwright.audit.readings.answers import RELEASE_LAYER, asked_for, meant, read_answers
from hostwright.audit.readings.program import COMPLETE
from hostwright.plan.model import Probe
from hostwright.plan.roles.auditvalue import PRODUCT, AuditValue


def gpu_readings(ctx: AuditContext, product: str) -> Iterator[Reading]:
    """Yield the models and number of GPUs, compared among hosts of one ``product``, and the values of each model.

    Empty if the GPUs could not be read.
    """
    try:
        cards = ctx.gpus
    except Unread:
        return
    models = tuple(dict.fromkeys(card.model for card in cards))
    yield Reading(GPU_LAYER, "models", ", ".join(models), among=product)
    yield Reading(GPU_LAYER, "count", str(len(cards)), among=product)
    for model in models:
        own = [card for card in cards if card.model == model]
        for name, value in filter(None, (column.compared for column in GPU_COLUMNS)):
            unique = name if len(models) == 1 else f"{name} of {model}"
            yield Reading(GPU_LAYER, unique, _alike(own, value), among=model)


def _alike(cards: Sequence[Gpu], value: Text) -> str:
    """Return the most common ``value`` of the GPUs, then each GPU with another value: ``90.04.38.00.03, card 3:
    90.04.96.00.01``.
    """
    common = Counter(map(value, cards)).most_common(1)[0][0]
    others = [f"card {card.index}: {value(card) or 'none'}" for card in cards if value(card) != common]
    return ", ".join([common or "none", *others]) if others else common


Answers = dict[str, str]


def readings(ctx: AuditContext, values: tuple[AuditValue, ...]) -> tuple[Reading, ...]:
    """Return the readings of a host in the audited layers. ``values`` are the values that all the host's
    roles define.
    """
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
    try:
        return read_answers(ctx.answer(probe).text)
    except Unread:
        return {}


def _reading(value: AuditValue, user: Answers, root: Answers) -> Reading | None:
    answers = root if value.root else user
    if value.where.line not in answers and COMPLETE not in answers:
        return None
    read = answers.get(value.where.line, "")
    have = value.derive(read) if value.derive else read
    among = user.get(value.among.line, "") if value.among else ""
    return None if have is None else Reading(value.layer, value.name, have, value.want, among)
