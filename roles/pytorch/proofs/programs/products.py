"""Products of matrices on each card in the formats that it has, right and fast, and copies within its memory.

The processor does it with float32 alone, in a smaller size.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from hostwright.standard.roles.cuda.proofs.programs.common import (
    OF_LARGEST_VALUE,
    Device,
    Lines,
    compared,
    difference,
    nvidia_smi,
    run,
    sentence_of,
)
from hostwright.standard.roles.pytorch.proofs.programs.common import cpu, gpus, synchronize

ROUND = 10  #: products between two looks at the clock


class Format(NamedTuple):
    """A format of factors: how it is called, PyTorch's name, and the first compute capability that has it."""

    name: str
    dtype: str
    since: tuple[int, int]


FORMATS = (
    Format("fp32", "float32", (0, 0)),
    Format("tf32", "float32", (8, 0)),
    Format("bf16", "bfloat16", (8, 0)),
    Format("fp16", "float16", (7, 0)),
    Format("fp8", "float8_e4m3fn", (8, 9)),
)
MEMORY = "memory copy"


def main(lines: Lines, arguments: dict[str, Any]) -> None:
    """The processor, then each card."""
    import torch

    seconds, cards = float(arguments["seconds"]), gpus()
    numbers = {uuid: number.lower()[2:6] for uuid, number in nvidia_smi("uuid,pci.device_id")}  # of 0x20B210DE
    measured(lines, cpu(), FORMATS[0], size=int(arguments["cpu_size"]), seconds=seconds, sheet={})
    for card in cards:
        lines.measure("gpu", torch.cuda.get_device_name(card.name), "", card.label)
        part = " MIG " in card.label  # of a card: the data sheet tells of the whole
        sheet = {} if part else arguments["datasheets"].get(numbers.get(card.label.partition(" ")[0], ""), {})
        capability = torch.cuda.get_device_capability(card.name)
        for each in FORMATS:
            if capability >= each.since:
                measured(lines, card, each, size=int(arguments["size"]), seconds=seconds, sheet=sheet)
        copied(lines, card, int(arguments["bytes"]), seconds, sheet)
    if not cards:
        lines.without_gpu("gpu", "")
        for each in FORMATS:
            lines.without_gpu(f"product in {each.name}", OF_LARGEST_VALUE)
            lines.without_gpu(each.name, "TFLOPS")
        lines.without_gpu(MEMORY, "GB/s")


def measured(lines: Lines, device: Device, form: Format, *, size: int, seconds: float, sheet: dict[str, float]) -> None:
    """One format on one device: right first, then TFLOPS."""
    import torch

    torch.set_float32_matmul_precision("high" if form.name == "tf32" else "highest")
    compared(lines, f"product in {form.name}", device, lambda place: exact(place, form))
    try:
        left, right = factors(form, *(torch.randn(size, size, device=device.name) for _ in range(2)))
        speed = rate(device, lambda: multiply(left, right), seconds)
    except RuntimeError as error:  # too little memory is free
        lines.measure(form.name, sentence_of(error), "TFLOPS", device.label)
        return
    figure(lines, device, form.name, 2 * size**3 * speed / 1e12, sheet)


def exact(device: Device, form: Format) -> float:
    """The difference of a product of -1, 0 and 1, whose sums up to 256 every format of the result holds exactly."""
    import numpy
    import torch

    random = numpy.random.default_rng(4)
    left, right = (random.integers(-1, 2, (256, 256)) for _ in range(2))
    matrices = (torch.tensor(matrix, dtype=torch.float32, device=device.name) for matrix in (left, right))
    result = multiply(*factors(form, *matrices))
    return difference(result.float().cpu().numpy(), left @ right)


def factors(form: Format, left: Any, right: Any) -> Any:
    """Two matrices in this format; cards multiply FP8 where the second is stored by columns."""
    import torch

    dtype = getattr(torch, form.dtype)
    return left.to(dtype), right.t().contiguous().to(dtype).t() if form.name == "fp8" else right.to(dtype)


def multiply(left: Any, right: Any) -> Any:
    """The product; that of FP8 is scaled by one, in BF16."""
    import torch

    if left.dtype != torch.float8_e4m3fn:
        return left @ right
    one = torch.ones((), device=left.device)
    result = torch._scaled_mm(left, right, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)
    return result[0] if isinstance(result, tuple) else result  # PyTorch 2.4


def copied(lines: Lines, device: Device, size: int, seconds: float, sheet: dict[str, float]) -> None:
    """Bytes that a card reads and writes in its memory per second."""
    import torch

    source = torch.zeros(size, dtype=torch.uint8, device=device.name)
    target = torch.ones_like(source)
    speed = rate(device, lambda: target.copy_(source), seconds)
    figure(lines, device, MEMORY, 2 * size * speed / 1e9, sheet)


def figure(lines: Lines, device: Device, name: str, value: float, sheet: dict[str, float]) -> None:
    """A figure, and its share of what the card's data sheet has."""
    better = "" if device == cpu() else "more"
    lines.measure(name, value, "GB/s" if name == MEMORY else "TFLOPS", device.label, better)
    if name in sheet:
        lines.measure(f"share of {name}", 100 * value / sheet[name], "%", device.label)


def rate(device: Device, work: Callable[[], Any], seconds: float) -> float:
    """Runs of the work per second: the median of the rounds in this time. The first run is not timed."""
    work()
    synchronize(device)
    rounds: list[float] = []
    until = time.perf_counter() + seconds
    while len(rounds) < 3 or time.perf_counter() < until:
        start = time.perf_counter()
        for _ in range(ROUND):
            work()
        synchronize(device)
        rounds.append(ROUND / (time.perf_counter() - start))
    return statistics.median(rounds)


if __name__ == "__main__":
    run(main)
