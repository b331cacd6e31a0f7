"""What TensorFlow's measurements show: wrong results, settings that lose, cards that are not used."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.proofs import CPU, Expected, Measurement, Measurements, ProofFinding
from hostwright.standard.roles.cuda.proofs.frameworks import (
    CONVOLVED,
    SAME,
    agreement,
    all_together,
    on_every_card,
    within,
)

ACCURACY = 0.95  #: of points around four centres that are far apart
DIVERGED = 4.0  #: the loss of a network over ten random labels is ln 10 = 2.3
COMPILED_LOSS, HALF_LOSS = 1e-2, 5e-2  #: of the loss; float16 holds 3 digits, TF32 as many
LOSING = 0.9  #: a setting makes a step slower
BALANCE = 20.0  #: percentage points of utilisation between the busiest card and another
FED = 0.9  #: of what a card trains from memory: with less from the disk it waits for its input
STARVED = 30.0  #: percent of utilisation below which a card waits for its input


def benchmark(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """The network did not diverge, and a GPU is faster than the processor."""
    return tuple(_benchmark(measured, expected))


def _benchmark(measured: Measurements, expected: Expected) -> Iterator[ProofFinding]:
    if measured.named("prediction"):
        yield from within(measured, "prediction", SAME, "the trained network's prediction")
    if not measured.named("samples per second"):
        yield ProofFinding("no epoch was timed: the program ended without one", CPU)
    for each in measured.named("loss"):
        if each.number is None or not 0 <= each.number < DIVERGED:
            limit = f"below {DIVERGED:g}"
            yield ProofFinding("training diverged on random labels", each.device, "failed", _text(each), limit)
    for each in measured.named("times the processor"):
        if each.number is not None and each.number < 1:
            yield ProofFinding(
                "the GPU trains this network slower than the processor", each.device, "note", _text(each)
            )
    yield from on_every_card(measured, "samples per second", expected)


def dense(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """As every benchmark, and what the trained network predicts was compared with NumPy."""
    unseen = () if measured.named("prediction") else tuple(within(measured, "prediction", SAME, "the prediction"))
    return (*unseen, *benchmark(measured, expected))


def gains(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """No setting changes the result; one that loses is told."""
    return tuple(_gains(measured, expected))


def _gains(measured: Measurements, expected: Expected) -> Iterator[ProofFinding]:
    yield from within(measured, "first loss with xla", COMPILED_LOSS, "the loss with XLA")
    for name, tolerance in (("with mixed precision", HALF_LOSS), ("without autotuning", COMPILED_LOSS)):
        if measured.named(f"first loss {name}"):
            yield from within(measured, f"first loss {name}", tolerance, f"the loss {name}")
    for setting, name in (("XLA", "xla"), ("mixed precision",) * 2, ("autotuning",) * 2):
        for each in measured.named(f"gain of {name}"):
            if each.number is not None and each.number < LOSING:
                yield ProofFinding(
                    f"{setting} makes a step slower here", each.device, "note", _text(each), "1 × or more"
                )
    yield from on_every_card(measured, "step", expected)


def formats(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """The network has learned, and every format of it predicts the same."""
    return tuple(_formats(measured, expected))


def _formats(measured: Measurements, expected: Expected) -> Iterator[ProofFinding]:
    for each in measured.named("accuracy"):
        if each.number is None or each.number < ACCURACY:
            limit = f"{ACCURACY:g} or more"
            yield ProofFinding(
                "the network did not learn to tell four groups apart", each.device, "failed", _text(each), limit
            )
    for name, what in (
        ("trained", "the trained network's prediction"),
        ("savedmodel", "the SavedModel's prediction"),
        ("tf lite", "TF Lite's prediction"),
    ):
        yield from within(measured, name, SAME, what)
    converted = tuple(
        each for each in measured.named("tf-trt") if each.unit
    )  # without a unit: it says that there is none
    if converted:
        yield from within(Measurements(converted), "tf-trt", CONVOLVED, "TensorRT's prediction")
    yield from on_every_card(measured, "trained", expected)


def feeding(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """What was read is what was written; a card that waits for its images is told, alone and beside the others."""
    return tuple(_feeding(measured, expected))


def _feeding(measured: Measurements, expected: Expected) -> Iterator[ProofFinding]:
    yield from within(measured, "records changed", 0, "what was read from the disk")
    prepared = measured.number("images prepared")
    if prepared is None:
        yield ProofFinding("no image was prepared: the program ended without one", CPU)
    from_disk = {each.device: each.number for each in measured.named("images trained from disk")}
    taken = {
        each.device: each.number
        for each in measured.named("images trained from memory")
        if each.number is not None and not each.device.startswith(CPU)
    }
    for device, appetite in taken.items():
        fed = from_disk.get(device)
        if fed is None:
            yield ProofFinding("no image reached the card from the disk", device)
        elif fed < FED * appetite:
            sentence = 'the card waits for its images: compare "images prepared" (processors), "records read" (disk)'
            yield ProofFinding(sentence, device, "note", f"{fed:.0f} 1/s", f"{appetite:.0f} 1/s, as from memory")
    together = sum(taken.values())
    if len(taken) > 1 and prepared is not None and prepared < FED * together:
        sentence = f"the processors prepare fewer images than the {len(taken)} cards train together"
        yield ProofFinding(sentence, CPU, "note", f"{prepared:.0f} 1/s", f"{together:.0f} 1/s")
    yield from on_every_card(measured, "images trained from memory", expected)


def mirrored(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """All cards took part, learned what one learns, are faster than one, and were used evenly."""
    return tuple(_mirrored(measured, expected))


def _mirrored(measured: Measurements, expected: Expected) -> Iterator[ProofFinding]:
    yield from agreement(measured)
    yield from all_together(measured, expected)
    for each in measured.named("devices"):
        count = each.number or 0
        for efficiency in measured.named("scaling efficiency"):
            if efficiency.number is not None and count > 1 and efficiency.number * count < 100:
                sentence = "all cards together train no faster than one of them"
                yield ProofFinding(
                    sentence, efficiency.device, "outlier", _text(efficiency), f"more than {100 / count:.0f} %"
                )
    yield from utilisation(measured)


def utilisation(measured: Measurements) -> Iterator[ProofFinding]:
    """Every card was as busy as the busiest, and that one was busy."""
    used = {each.device: each.number for each in measured.named("utilisation") if each.number is not None}
    most = max(used.values(), default=0.0)
    for device, percent in used.items():
        if most - percent > BALANCE:
            limit = f"within {BALANCE:g} points of {most:.0f} %"
            yield ProofFinding("this card was used less than others", device, "outlier", f"{percent:.0f} %", limit)
    if used and most < STARVED:
        sentence = (
            "the cards wait for their input: see the input pipeline, the processor and the link between the cards"
        )
        yield ProofFinding(sentence, next(iter(used)), "note", f"{most:.0f} %", f"{STARVED:g} % or more")


def workers(measured: Measurements, _expected: Expected) -> tuple[ProofFinding, ...]:
    """What the hosts learned together is what one device learns."""
    return tuple(agreement(measured))


def _text(each: Measurement) -> str:
    return f"{each.number:.3g} {each.unit}".strip() if each.number is not None else str(each.value)
