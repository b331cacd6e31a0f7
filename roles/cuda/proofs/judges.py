"""What the figures of cards show: against Azure's and DCGM's limits for their model, and against their neighbours.

Pure. Twins in other hosts and baselines are compared elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from hostwright.proofs import Expected, Measurement, Measurements, ProofFinding
from hostwright.standard.roles.cuda.proofs.limits import (
    HOST,
    LEAST_OF_LINK,
    LOST_UNDER_LOAD,
    PEER,
    SLOWER_THAN_NEIGHBOURS,
    WITHIN,
)

_HOST = ("host to device", "device to host")


def bandwidth(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """Whether all cards are there, bytes arrive as they were sent, and copies are as fast as for the model of card."""
    return (
        *missing(measured, expected),
        *not_zero(measured, "wrong bytes", "bytes that went to the card and back came back changed"),
        *_limits(measured),
        *_neighbours(measured, (*_HOST, "within the card")),
    )


def memory(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """Whether every word of the cards' memory keeps what is written to it."""
    places = {one.device: f" (first at {one.value})" for one in measured.named("first wrong word")}
    wrong = not_zero(measured, "wrong words", "the card's memory does not keep what is written to it", places)
    return (*missing(measured, expected), *wrong, *_neighbours(measured, ("patterns through memory",)))


def burn_in(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """Whether the cards compute the same under load again and again, correctly, and keep their clocks."""
    return (
        *missing(measured, expected),
        *not_zero(measured, "wrong results", "the same product came out differently under load"),
        *not_zero(measured, "differs from the processor", "the card computes other results than the processor"),
        *_slowed_down(measured),
        *_lost(measured),
        *_neighbours(measured, ("products",)),
    )


def missing(measured: Measurements, expected: Expected) -> Iterator[ProofFinding]:
    """Cards on the bus that CUDA does not use. How many there should be is the audit's question."""
    for one in measured.named("cards"):
        wanted = max(expected.cards_on_bus, expected.gpus or 0)
        if one.number is not None and one.number < wanted:
            sentence = f"CUDA sees {one.number:g} of {wanted} cards"
            yield ProofFinding(sentence, one.device, "failed", f"{one.number:g}", f"{wanted}")


def not_zero(
    measured: Measurements, name: str, sentence: str, more: dict[str, str] | None = None
) -> Iterator[ProofFinding]:
    """A finding for each device whose value of this name is not 0."""
    for one in measured.named(name):
        if one.number != 0:
            place = (more or {}).get(one.device, "")
            yield ProofFinding(f"{sentence}: {_shown(one)} times{place}", one.device, "failed", _shown(one), "0")


def _limits(measured: Measurements) -> Iterator[ProofFinding]:
    ids = {one.device: str(one.value) for one in measured.named("pci id")}
    links = {one.device: one.number for one in measured.named("link")}
    reached = {one.device for one in measured.named("peer access") if one.value == "yes"}
    for name in _HOST:
        for one in measured.named(name):
            identity, carries = ids.get(one.device, ""), links.get(one.device)
            if identity in HOST:
                yield from _below(one, HOST[identity], f"what Azure asks of this model ({identity})")
            elif carries:
                why = f"{LEAST_OF_LINK:.0%} of the {carries:.1f} GB/s that its PCIe link carries"
                yield from _below(one, LEAST_OF_LINK * carries, why)
    for one in measured.named("within the card"):
        identity = ids.get(one.device, "")
        yield from _below(one, WITHIN.get(identity, 0.0), f"what DCGM asks of this model ({identity})")
    for one in measured.named("card to card"):
        identity = next(
            (number for device, number in ids.items() if device.split(" ")[0] == one.device.split(" ")[0]), ""
        )
        if one.device in reached:
            yield from _below(one, PEER.get(identity, 0.0), f"what Azure asks of this model ({identity})")


def _below(one: Measurement, limit: float, why: str) -> Iterator[ProofFinding]:
    if one.number is not None and one.number < limit:
        sentence = f"{one.name}: {_shown(one)}, less than {why}, {limit:g} {one.unit}"
        yield ProofFinding(sentence, one.device, "failed", _shown(one), f"{limit:g} {one.unit} at least")


def _neighbours(measured: Measurements, names: tuple[str, ...]) -> Iterator[ProofFinding]:
    """Cards that are slower than those of their model beside them; of two, the slower one."""
    for name in names:
        alike: dict[str, list[Measurement]] = defaultdict(list)
        for one in measured.named(name):
            alike[one.model].append(one)
        for cards in alike.values():
            yield from _slower(name, cards)


def _slower(name: str, cards: list[Measurement]) -> Iterator[ProofFinding]:
    for one in cards:
        others = [other.number for other in cards if other is not one and other.number is not None]
        if not others or one.number is None:
            continue
        middle = median(others)
        if one.number < (1 - SLOWER_THAN_NEIGHBOURS) * middle:
            part = 1 - one.number / middle
            sentence = (
                f"{name}: {part:.0%} slower than the same model beside it: {_shown(one)}, the others {middle:.4g}"
            )
            yield ProofFinding(sentence, one.device, "outlier", _shown(one), f"{middle:.4g} {one.unit}")


def _slowed_down(measured: Measurements) -> Iterator[ProofFinding]:
    """Azure's check (azure_gpu_clock_throttling.nhc) accepts idle, none and the software's power cap, and no other."""
    for name, cause in (
        ("slowed down by heat", "heat lowers its clocks under load"),
        ("slowed down by the hardware", "its hardware lowers its clocks under load (power supply, or heat)"),
    ):
        for one in measured.named(name):
            if one.number:
                sentence = f"{cause}: in {one.number:.0f} % of the samples{_heat(measured, one.device)}"
                yield ProofFinding(sentence, one.device, "failed", f"{one.number:.0f} %", "0 %")


def _heat(measured: Measurements, device: str) -> str:
    hottest = measured.number("temperature", device)
    clock = measured.number("lowest clock", device)
    return f", at up to {hottest:g} °C and down to {clock:g} MHz" if hottest is not None and clock is not None else ""


def _lost(measured: Measurements) -> Iterator[ProofFinding]:
    for one in measured.named("products"):
        first = measured.number("products at first", one.device)
        if not first or one.number is None:
            continue
        lost = 1 - one.number / first
        if lost > LOST_UNDER_LOAD:
            sentence = f"it lost {lost:.0%} of its throughput under load: {_shown(one)}, at first {first:.4g}"
            yield ProofFinding(
                sentence, one.device, "failed", _shown(one), f"{(1 - LOST_UNDER_LOAD) * first:.4g} {one.unit}"
            )


def _shown(one: Measurement) -> str:
    return f"{one.number:.4g} {one.unit}".strip() if one.number is not None else "nothing"
