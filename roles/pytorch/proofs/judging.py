"""Findings in PyTorch's measurements: slow or wrong products, and different results when compiled or on several
GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from hostwright.proofs import Expected, Measurements, ProofFinding
from hostwright.standard.roles.cuda.proofs.datasheets import FORMATS, LEAST, MEMORY
from hostwright.standard.roles.cuda.proofs.frameworks import (
    LEARNED,
    SAME,
    agreement,
    all_together,
    cards,
    on_every_card,
    within,
)
from hostwright.standard.roles.cuda.proofs.judges import neighbours, not_zero

TITLE = "PyTorch"


def products(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """Return findings for wrong products, and for GPUs slower than their data sheet or the host's other GPUs."""
    formats = [name for name in FORMATS if name == "fp32" or measured.named(f"product in {name}")]
    wrong = (within(measured, f"product in {name}", 0.0, f"the matrix product in {name}") for name in formats)
    untimed = (
        ProofFinding(f"matrix products in {name} could not be timed: {one.value}", one.device)
        for name in formats
        for one in measured.named(name)
        if one.number is None
    )
    return (
        *cards(measured, expected, TITLE),
        *chain.from_iterable(wrong),
        *untimed,
        *_shares(measured),
        *neighbours(measured, (*FORMATS, MEMORY)),
        *on_every_card(measured, MEMORY, expected),
    )


def _shares(measured: Measurements) -> Iterator[ProofFinding]:
    for name, least in LEAST.items():
        for one in measured.named(f"share of {name}"):
            if one.number is None or one.number < least:
                reached = f"{one.number:.0f} %" if one.number is not None else str(one.value)
                sentence = (
                    f"{name} reaches {reached} of the rate in the GPU's data sheet; check clocks, "
                    "throttling reasons and power limit with `nvidia-smi -q -d CLOCK,PERFORMANCE,POWER`"
                )
                yield ProofFinding(sentence, one.device, "failed", reached, f"{least:.0f} % at least")


def compiled(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """Return findings for GPUs on which a compiled network gives other results than the same network uncompiled."""
    return (
        *cards(measured, expected, TITLE),
        *within(measured, "compiled", SAME, "the prediction of the compiled network"),
        *within(measured, "compiled gradient", SAME, "the gradient of the compiled network"),
        *on_every_card(measured, "compiled", expected),
    )


def training(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """Return the findings of ``workers``, and a finding for each GPU that did not take part."""
    return (*workers(measured, expected), *all_together(measured, expected))


def workers(measured: Measurements, _expected: Expected) -> tuple[ProofFinding, ...]:
    """Return findings for wrong sums, and for devices that together train other weights than one device."""
    return (
        *not_zero(measured, "wrong sums", "the sum over all devices is wrong"),
        *within(measured, "loss beside one device", LEARNED, "the loss of joint training"),
        *agreement(measured),
    )
