"""Findings from measurements of GPUs, compared with limits of Azure and DCGM, and with other GPUs of the host.

The tables have the minimum for a healthy GPU by PCI id of its model.

Azure: azurehpc-health-checks (commit 0e0a1ac), conf/*.conf, ``check_gpu_bw HOST PEER`` in GB/s. Comments name the GPU,
then one of Azure's virtual machines with this GPU.

DCGM: NVIDIA/DCGM (commit 72fa3fe), nvvs/diag-skus.yaml.in, ``memory_bandwidth.minimum_bandwidth`` in MB/s; the lower
value if an id occurs twice. Left out are 20b0 (A100-SXM4-40GB, 137500) and 2335 (H200, 2333), whose values are probably
mistakes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from hostwright.proofs import Expected, Measurement, Measurements, ProofFinding

#: PCI ID → minimum GB/s between host and GPU, in each direction (Azure)
HOST = {
    "1db4": 10.0,  # V100-PCIE-16GB, nc6s_v3
    "1db5": 9.0,  # V100-SXM2-32GB, nd40rs_v2
    "20b0": 21.0,  # A100-SXM4-40GB, nd96asr_v4
    "20b2": 21.0,  # A100-SXM4-80GB, nd96amsr_a100_v4
    "20b5": 21.0,  # A100 80GB PCIe, nc24ads_a100_v4
    "2321": 48.0,  # H100 NVL, nc40ads_h100_v5
    "2330": 48.0,  # H100 80GB HBM3, nd96isr_h100_v5
    "2335": 48.0,  # H200, nd96isr_h200_v5
}

#: minimum share of the PCIe link's bandwidth for GPUs outside ``HOST`` (our choice). Azure requires 57 to 76 %.
LEAST_OF_LINK = 0.55

#: PCI ID → minimum GB/s between two GPUs that can access each other's memory (Azure)
PEER = {
    "20b0": 235.0,  # A100-SXM4-40GB, nd96asr_v4
    "20b2": 238.0,  # A100-SXM4-80GB, nd96amsr_a100_v4
    "2330": 335.0,  # H100 80GB HBM3, nd96isr_h100_v5
    "2335": 335.0,  # H200, nd96isr_h200_v5
}

#: PCI ID → minimum GB/s of read plus written bytes within the GPU's memory (DCGM)
WITHIN = {
    "1bb3": 123.75,  # Tesla P4
    "1bb4": 114.263,  # Tesla P6
    "1db0": 607.5,  # V100-SXM2-16GB
    "1db1": 607.5,  # V100-SXM2-16GB and -32GB
    "1db4": 607.5,  # V100-PCIE-16GB
    "1db5": 607.5,  # V100-SXM2-32GB
    "1db6": 607.5,  # V100-PCIE-32GB
    "1df6": 675.0,  # V100S-PCIE-32GB
    "1e30": 415.275,  # Quadro RTX 6000 and 8000
    "1e78": 360.225,  # Quadro RTX 6000 and 8000, passive
    "1eb8": 183.0,  # T4
    "20b2": 1173.0,  # A100-SXM4-80GB
    "20b5": 1121.25,  # A100 80GB PCIe
    "20b7": 585.0,  # A30
    "20f1": 969.75,  # A100-PCIE-40GB
    "2230": 506.0,  # RTX A6000
    "2231": 507.5,  # RTX A5000
    "2235": 423.675,  # A40
    "2237": 362.7,  # A10G
    "24b0": 290.75,  # RTX A4000
    "25b6": 123.225,  # A2 and A16; DCGM requires 135 for the A16
    "2321": 2043.0,  # H100 NVL
    "2330": 1905.0,  # H100 80GB HBM3
}

#: maximum share by which a GPU may be slower than the median of the host's GPUs of the same model (our choice)
SLOWER_THAN_NEIGHBOURS = 0.15

#: maximum share of throughput lost during a burn-in (our choice). Warm GPUs clock some 5 % lower.
LOST_UNDER_LOAD = 0.10


_HOST = ("host to device", "device to host")


def bandwidth(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """Check that no GPU is missing, and that copies were correct and fast enough for the GPU model."""
    return (
        *missing(measured, expected),
        *not_zero(measured, "wrong bytes", "bytes changed in a copy to the card and back"),
        *_limits(measured),
        *neighbours(measured, (*_HOST, "within the card")),
    )


def memory(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """Check that all GPU memory kept the written values."""
    places = {one.device: f" (first at {one.value})" for one in measured.named("first wrong word")}
    wrong = not_zero(measured, "wrong words", "the card's memory returned other data than was written", places)
    return (*missing(measured, expected), *wrong, *neighbours(measured, ("patterns through memory",)))


def burn_in(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """Check that GPUs computed correct, repeatable results under load, and kept their clocks."""
    return (
        *missing(measured, expected),
        *not_zero(measured, "wrong results", "repetitions of one matrix product gave different results under load"),
        *not_zero(measured, "differs from the processor", "the card's results differ from the processor's"),
        *_slowed_down(measured),
        *_lost(measured),
        *neighbours(measured, ("products",)),
    )


def missing(measured: Measurements, expected: Expected) -> Iterator[ProofFinding]:
    """Yield a finding if CUDA has fewer GPUs than the PCI bus or the inventory."""
    for one in measured.named("cards"):
        wanted = max(expected.cards_on_bus, expected.gpus or 0)
        if one.number is not None and one.number < wanted:
            sentence = f"CUDA finds {one.number:g} of {wanted} cards"
            yield ProofFinding(sentence, one.device, "failed", f"{one.number:g}", f"{wanted}")


def not_zero(
    measured: Measurements, name: str, sentence: str, more: dict[str, str] | None = None
) -> Iterator[ProofFinding]:
    """Yield a finding with ``sentence`` for each device with a nonzero measurement ``name``."""
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
                yield from _below(one, HOST[identity], f"Azure's minimum for this model ({identity})")
            elif carries:
                why = f"{LEAST_OF_LINK:.0%} of the {carries:.1f} GB/s of its PCIe link"
                yield from _below(one, LEAST_OF_LINK * carries, why)
    for one in measured.named("within the card"):
        identity = ids.get(one.device, "")
        yield from _below(one, WITHIN.get(identity, 0.0), f"DCGM's minimum for this model ({identity})")
    for one in measured.named("card to card"):
        identity = next(
            (number for device, number in ids.items() if device.split(" ")[0] == one.device.split(" ")[0]), ""
        )
        if one.device in reached:
            yield from _below(one, PEER.get(identity, 0.0), f"Azure's minimum for this model ({identity})")


def _below(one: Measurement, limit: float, why: str) -> Iterator[ProofFinding]:
    if one.number is not None and one.number < limit:
        sentence = f"{one.name}: {_shown(one)} is too slow. The limit is {limit:g} {one.unit}: {why}"
        yield ProofFinding(sentence, one.device, "failed", _shown(one), f"{limit:g} {one.unit} at least")


def neighbours(measured: Measurements, names: tuple[str, ...]) -> Iterator[ProofFinding]:
    """Yield findings about GPUs that are slower than other GPUs of the same model in the host."""
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
                f"{name}: {_shown(one)}. This is {part:.0%} slower than the host's other cards of this model "
                f"(median: {middle:.4g})"
            )
            yield ProofFinding(sentence, one.device, "outlier", _shown(one), f"{middle:.4g} {one.unit}")


def _slowed_down(measured: Measurements) -> Iterator[ProofFinding]:
    """Report GPUs with clocks that heat or the hardware lowered.

    As in Azure's check (azure_gpu_clock_throttling.nhc), only idle GPUs and the software's power cap may lower clocks.
    """
    for name, cause in (
        ("slowed down by heat", "heat lowered the card's clocks under load"),
        (
            "slowed down by the hardware",
            "the hardware lowered the card's clocks under load (because of power supply or heat)",
        ),
    ):
        for one in measured.named(name):
            if one.number:
                sentence = f"{cause}: in {one.number:.0f} % of the measurements{_heat(measured, one.device)}"
                yield ProofFinding(sentence, one.device, "failed", f"{one.number:.0f} %", "0 %")


def _heat(measured: Measurements, device: str) -> str:
    hottest = measured.number("temperature", device)
    clock = measured.number("lowest clock", device)
    return f" (up to {hottest:g} °C, down to {clock:g} MHz)" if hottest is not None and clock is not None else ""


def _lost(measured: Measurements) -> Iterator[ProofFinding]:
    for one in measured.named("products"):
        first = measured.number("products at first", one.device)
        if not first or one.number is None:
            continue
        lost = 1 - one.number / first
        if lost > LOST_UNDER_LOAD:
            sentence = (
                f"the card lost {lost:.0%} of its throughput under load: from {first:.4g} at the start to {_shown(one)}"
            )
            yield ProofFinding(
                sentence, one.device, "failed", _shown(one), f"{(1 - LOST_UNDER_LOAD) * first:.4g} {one.unit}"
            )


def _shown(one: Measurement) -> str:
    return f"{one.number:.4g} {one.unit}".strip() if one.number is not None else "nothing"
