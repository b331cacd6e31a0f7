"""The values of a host's cards that are compared with those of other hosts with the same model of card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from hostwright.audit.fleetaudit import GPU_LAYER, Reading
from hostwright.audit.hardware.gpu import Gpu
from hostwright.audit.judging.context import AuditContext, Unread

Value = Callable[[Gpu], str]


def _switch(state: bool | None) -> str:
    return "" if state is None else "on" if state else "off"


def _memory(gpu: Gpu) -> str:
    return "" if gpu.memory_bytes is None else f"{gpu.memory_bytes >> 20} MiB"


def _power_limit(gpu: Gpu) -> str:
    return "" if gpu.power_limit is None else f"{gpu.power_limit:.0f} W"


#: the values that should be equal for cards of one model
VALUES: tuple[tuple[str, Value], ...] = (
    ("vbios", lambda gpu: gpu.vbios),
    ("memory", _memory),
    ("ecc", lambda gpu: _switch(gpu.ecc)),
    ("mig", lambda gpu: _switch(gpu.mig)),
    ("power limit", _power_limit),
)


def gpu_readings(ctx: AuditContext, product: str) -> Iterator[Reading]:
    """The models and number of cards, compared among hosts of one ``product``, and the values of each model; nothing
    where the cards could not be read.
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
        for name, value in VALUES:
            unique = name if len(models) == 1 else f"{name} of {model}"
            yield Reading(GPU_LAYER, unique, _alike(own, value), among=model)


def _alike(cards: Sequence[Gpu], value: Value) -> str:
    """The most common value, then each card that has another: ``90.04.38.00.03, card 3: 90.04.96.00.01``."""
    common = Counter(map(value, cards)).most_common(1)[0][0]
    others = [f"card {card.index}: {value(card) or 'none'}" for card in cards if value(card) != common]
    return ", ".join([common or "none", *others]) if others else common
