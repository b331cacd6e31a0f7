"""Findings in TensorFlow's measurements: wrong results, slow settings, and unused GPUs."""

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

ACCURACY = 0.95  #: minimum accuracy of a model that classifies points around four distant centres
DIVERGED = 4.0  #: maximum loss of a training. Guessing among ten labels has a loss of 2.3.
#: relative tolerances of a training's loss, with compiled code and with half precision
COMPILED_LOSS, HALF_LOSS = 1e-2, 5e-2
LOSING = 0.9  #: minimum ratio of a training step's speed with a setting to the speed without the setting
BALANCE = 20.0  #: maximum difference in percentage points between the GPUs' utilisations
FED = 0.9  #: minimum rate of a training from disk, as a share of the rate from memory
STARVED = 30.0  #: utilisation in percent below which a GPU is reported as waiting for input


def benchmark(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """Return findings if the training diverged, the network predicts wrong values, or a GPU is slower than the CPU."""
    return tuple(_benchmark(measured, expected))


def _benchmark(measured: Measurements, expected: Expected) -> Iterator[ProofFinding]:
    if measured.named("prediction"):
        yield from within(measured, "prediction", SAME, "the trained network's prediction")
    if not measured.named("samples per second"):
        yield ProofFinding("no epoch was timed: the test program ended too early", CPU)
    for each in measured.named("loss"):
        if each.number is None or not 0 <= each.number < DIVERGED:
            limit = f"below {DIVERGED:g}"
            yield ProofFinding("training diverged on random labels", each.device, "failed", _text(each), limit)
    for each in measured.named("times the processor"):
        if each.number is not None and each.number < 1:
            yield ProofFinding(
                "the GPU trains the test network more slowly than the processor", each.device, "note", _text(each)
            )
    yield from on_every_card(measured, "samples per second", expected)


def dense(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """Return the findings of ``benchmark``, and require a comparison of the prediction with NumPy's."""
    unseen = () if measured.named("prediction") else tuple(within(measured, "prediction", SAME, "the prediction"))
    return (*unseen, *benchmark(measured, expected))


def gains(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """Return findings for settings, such as XLA, that change the result or slow down a training step."""
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
                    f"{setting} makes a training step slower on this GPU",
                    each.device,
                    "note",
                    _text(each),
                    "1 × or more",
                )
    yield from on_every_card(measured, "step", expected)


def formats(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """Return findings if the network did not learn, or a saved model predicts other values."""
    return tuple(_formats(measured, expected))


def _formats(measured: Measurements, expected: Expected) -> Iterator[ProofFinding]:
    for each in measured.named("accuracy"):
        if each.number is None or each.number < ACCURACY:
            limit = f"{ACCURACY:g} or more"
            yield ProofFinding(
                "the test network did not learn to separate four groups of points",
                each.device,
                "failed",
                _text(each),
                limit,
            )
    for name, what in (
        ("trained", "the trained network's prediction"),
        ("savedmodel", "the SavedModel's prediction"),
        ("tf lite", "TF Lite's prediction"),
    ):
        yield from within(measured, name, SAME, what)
    converted = tuple(each for each in measured.named("tf-trt") if each.unit)
    if converted:
        yield from within(Measurements(converted), "tf-trt", CONVOLVED, "TensorRT's prediction")
    yield from on_every_card(measured, "trained", expected)


def feeding(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """Return findings for records that changed on disk, and for GPUs that wait for images."""
    return tuple(_feeding(measured, expected))


def _feeding(measured: Measurements, expected: Expected) -> Iterator[ProofFinding]:
    yield from within(measured, "records changed", 0, "the data read from the disk")
    prepared = measured.number("images prepared")
    if prepared is None:
        yield ProofFinding("the test program prepared no training image, because it ended too early", CPU)
    from_disk = {each.device: each.number for each in measured.named("images trained from disk")}
    taken = {
        each.device: each.number
        for each in measured.named("images trained from memory")
        if each.number is not None and not each.device.startswith(CPU)
    }
    for device, appetite in taken.items():
        fed = from_disk.get(device)
        if fed is None:
            yield ProofFinding("no image from the disk reached the GPU", device)
        elif fed < FED * appetite:
            sentence = 'the GPU waits for its images; compare "images prepared" (CPU) with "records read" (disk)'
            yield ProofFinding(sentence, device, "note", f"{fed:.0f} 1/s", f"{appetite:.0f} 1/s, as from memory")
    together = sum(taken.values())
    if len(taken) > 1 and prepared is not None and prepared < FED * together:
        sentence = f"the CPUs prepare fewer images than the {len(taken)} GPUs can train together"
        yield ProofFinding(sentence, CPU, "note", f"{prepared:.0f} 1/s", f"{together:.0f} 1/s")
    yield from on_every_card(measured, "images trained from memory", expected)


def mirrored(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """Return findings if GPUs that train together have wrong weights, are used unevenly, or are no faster than one."""
    return tuple(_mirrored(measured, expected))


def _mirrored(measured: Measurements, expected: Expected) -> Iterator[ProofFinding]:
    yield from agreement(measured)
    yield from all_together(measured, expected)
    for each in measured.named("devices"):
        count = each.number or 0
        for efficiency in measured.named("scaling efficiency"):
            if efficiency.number is not None and count > 1 and efficiency.number * count < 100:
                sentence = "all GPUs together train no faster than one"
                yield ProofFinding(
                    sentence, efficiency.device, "outlier", _text(efficiency), f"more than {100 / count:.0f} %"
                )
    yield from utilisation(measured)


def utilisation(measured: Measurements) -> Iterator[ProofFinding]:
    """Yield findings for GPUs that are used less than the busiest GPU, and one finding if all GPUs wait for input."""
    used = {each.device: each.number for each in measured.named("utilisation") if each.number is not None}
    most = max(used.values(), default=0.0)
    for device, percent in used.items():
        if most - percent > BALANCE:
            limit = f"within {BALANCE:g} points of {most:.0f} %"
            yield ProofFinding(
                "this GPU was used less than the host's other GPUs", device, "outlier", f"{percent:.0f} %", limit
            )
    if used and most < STARVED:
        sentence = "the GPUs wait for their input; check the input pipeline, the CPU and the link between the GPUs"
        yield ProofFinding(sentence, next(iter(used)), "note", f"{most:.0f} %", f"{STARVED:g} % or more")


def workers(measured: Measurements, _expected: Expected) -> tuple[ProofFinding, ...]:
    """Return findings if the hosts together trained other weights than one device alone."""
    return tuple(agreement(measured))


def _text(each: Measurement) -> str:
    return f"{each.number:.3g} {each.unit}".strip() if each.number is not None else str(each.value)
