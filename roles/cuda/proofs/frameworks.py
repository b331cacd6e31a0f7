"""Findings from measurements of a framework such as PyTorch: unexpected versions, missing GPUs, wrong results.

A tolerance is a fraction of the result's largest value. TensorFlow 2.9.0, PyTorch 2.13.0 and JAX 0.12.0 in float32 on a
CPU stay below 1e-6 of NumPy's result in float64. cuDNN's faster convolutions (Winograd) may lose two more digits. A
wrong value is usually off by more than 1e-2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hostwright.proofs import CPU, MODEL, Expected, Measurement, Measurements, ProofFinding
from hostwright.roles import Gpu, Pattern, whole
from hostwright.standard.roles.cuda.wheels import Codes
from hostwright.standard.roles.driver.chips import chip
from hostwright.standard.roles.driver.gpus import same_model

SAME = 1e-4  #: relative tolerance for a float32 computation whose sums are added in another order
CONVOLVED = 1e-3  #: relative tolerance for a convolution by any of cuDNN's algorithms
LEARNED = 1e-3  #: relative tolerance for a model's weights after training on several GPUs

NO_NUMBERS = {"not a number", "infinite"}  #: words in a program's output for differences that JSON cannot represent

_ARCHITECTURE = Pattern(r"(sm|compute)_([0-9]{1,2})([0-9])[a-z]?")
_CAPABILITY = Pattern(r"([0-9]{1,2})\.([0-9])")


@dataclass(frozen=True, slots=True)
class DevicesJudge:
    """Check of a framework's measurements on a host: the stack's versions, and code and results for all GPUs."""

    title: str
    #: measurement name → subject of a finding's sentence, and value in the stack
    wanted: Mapping[str, tuple[str, str | bool]]

    def judge(self, measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
        return (
            *versions(measured, self.wanted),
            *architectures(measured, self.title),
            *within(measured, "product", 0.0, "the test product of integer matrices"),
            *within(measured, "convolution", CONVOLVED, "the test convolution"),
            *cards(measured, expected, self.title),
            *models(measured, expected),
            *capabilities(measured),
        )


def versions(measured: Measurements, wanted: Mapping[str, tuple[str, str | bool]]) -> Iterator[ProofFinding]:
    """Check that measurements have the stack's values. ``wanted``: measurement → subject of the finding, and value."""
    for name, (subject, value) in wanted.items():
        found = next((each.value for each in measured.named(name)), "not reported")
        if found != value:
            sentence = f"{subject}: found {_word(found)}, expected {_word(value)}"
            yield ProofFinding(sentence, CPU, "failed", _word(found), _word(value))


def within(measured: Measurements, name: str, tolerance: float, what: str) -> Iterator[ProofFinding]:
    """Check that the relative differences in the measurements ``name`` exist and are at most ``tolerance``."""
    found = measured.named(name)
    if not found:
        yield ProofFinding(f"{what} was not compared with its reference: the test program ended too early", CPU)
    for each in found:
        if each.value in NO_NUMBERS:
            yield ProofFinding(
                f"{what} has values that are infinite or not numbers", each.device, measured=str(each.value)
            )
        elif each.number is None:
            yield ProofFinding(f"{what} could not be computed: {each.value}", each.device, measured="nothing")
        elif not 0 <= each.number <= tolerance:
            yield ProofFinding(
                f"{what} differs too much from its reference",
                each.device,
                measured=f"{each.number:.2g} {each.unit}",
                expected=f"at most {tolerance:g}",
            )


def architectures(measured: Measurements, title: str) -> Iterator[ProofFinding]:
    """Check that the framework has code, compiled or as PTX, for each GPU. Passes without a list of code."""
    for built in measured.named("architectures"):
        codes = _codes(str(built.value))
        for each in measured.named("compute capability"):
            own = _CAPABILITY.fullmatch(str(each.value))
            if codes and own and not codes.runs_on(_pair(own[1], own[2])):
                sentence = f"{title} has no code for this card (sm_{own[1]}{own[2]}): it is built for {built.value}"
                wanted = f"sm_{own[1]}{own[2]}: a stack that fits this host (stacks --hosts)"
                yield ProofFinding(sentence, each.device, "failed", str(built.value), wanted)


def _codes(text: str) -> Codes | None:
    found = [match for word in text.split() if (match := _ARCHITECTURE.fullmatch(word))]
    ptx = [_pair(one[2], one[3]) for one in found if one[1] == "compute"]
    compiled = tuple(_pair(one[2], one[3]) for one in found if one[1] == "sm")
    return Codes(compiled, min(ptx, default=None)) if found else None


def _pair(major: str | None, minor: str | None) -> tuple[int, int]:
    return whole(major or "") or 0, whole(minor or "") or 0


def cards(measured: Measurements, expected: Expected, title: str) -> Iterator[ProofFinding]:
    """Check that the framework computes on every GPU that the driver, the PCI bus and the inventory report."""
    seen = measured.named("gpu")
    missing = _missing(seen, expected)
    for card in missing:
        sentence = f"{title} does not compute on the card at {card.bus}, which the driver has"
        yield ProofFinding(sentence, _device(card), measured=f"not listed by {title}", expected=card.model)
    least = {
        "the inventory has (hostwright_gpus)": expected.gpus or 0,
        "are on the PCI bus": expected.cards_on_bus,
    }
    for where, count in least.items():
        if len(seen) + len(missing) < count:
            sentence = f"{title} computes on {len(seen)} of the {count} cards that {where}"
            yield ProofFinding(sentence, CPU, measured=f"{len(seen)}", expected=f"{count}")


def on_every_card(measured: Measurements, name: str, expected: Expected) -> Iterator[ProofFinding]:
    """Check that every GPU that the driver lists has a measurement ``name``."""
    seen = tuple(each for each in measured.named(name) if not each.device.startswith(CPU))
    for card in _missing(seen, expected):
        yield ProofFinding(f"nothing was computed on the card at {card.bus}", _device(card), "failed", "nothing", name)


def _missing(seen: tuple[Measurement, ...], expected: Expected) -> tuple[Gpu, ...]:
    devices = {each.device.partition(" ")[0] for each in seen}
    known = tuple(card for card in expected.cards or () if card.uuid)
    if devices <= {"GPU"}:
        return known[len(seen) :]
    return tuple(card for card in known if card.uuid not in devices)


def models(measured: Measurements, expected: Expected) -> Iterator[ProofFinding]:
    """Check that CUDA, the driver and the inventory have the same model name for each GPU."""
    known = {card.uuid: card.model for card in expected.cards or () if card.uuid and card.model}
    for each in measured.named("gpu"):
        model = known.get(each.device.partition(" ")[0])
        found = str(each.value)
        if model and not same_model(found, model):
            yield ProofFinding(
                "CUDA and the driver report different names for this card", each.device, "failed", found, model
            )
        elif expected.models and not any(same_model(found, model) for model in expected.models):
            sentence = f"this GPU is not of the model in the inventory ({MODEL})"
            yield ProofFinding(sentence, each.device, "failed", found, " or ".join(expected.models))


def _device(card: Gpu) -> str:
    return f"{card.uuid} ({card.model})" if card.model else card.uuid


def agreement(measured: Measurements) -> Iterator[ProofFinding]:
    """Check that distributed training ends with the same weights as one device and as NumPy."""
    yield from within(measured, "learned beside one device", LEARNED, "the result of joint training")
    yield from within(measured, "learned beside numpy", LEARNED, "the result of joint training")


def _word(value: float | str | bool | None) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def capabilities(measured: Measurements) -> Iterator[ProofFinding]:
    """Check that CUDA reports the compute capability of each GPU's chip. Otherwise, driver and CUDA do not match."""
    ids = {each.device: str(each.value) for each in measured.named("pci device")}
    for each in measured.named("compute capability"):
        known = chip(_device_id(ids.get(each.device, "")))
        if known and str(each.value) != (wanted := ".".join(map(str, known.capability))):
            sentence = f"CUDA reports another compute capability than {known.name} has: driver and CUDA do not match"
            yield ProofFinding(sentence, each.device, "failed", str(each.value), wanted)


def _device_id(text: str) -> int:
    try:
        return int(text, 16) >> 16 if len(text) == len("0x1EB810DE") else 0
    except ValueError:
        return 0


def all_together(measured: Measurements, expected: Expected) -> Iterator[ProofFinding]:
    """Check that all GPUs of the host took part in the distributed training."""
    wanted = max(len(expected.cards or ()), expected.gpus or 0)
    for each in measured.named("devices"):
        count, on_gpus = each.number or 0, not each.device.startswith(CPU)
        if wanted > 1 and (not on_gpus or count < wanted):
            trained = f"{count:.0f} cards" if on_gpus else "the processor"
            yield ProofFinding(
                "joint training did not use all cards", each.device, "failed", trained, f"{wanted} cards"
            )
