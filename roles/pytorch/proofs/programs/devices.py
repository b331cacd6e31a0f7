"""PyTorch's build, the devices that it finds on the host, and their results beside those of NumPy."""

from __future__ import annotations

from typing import Any

from hostwright.standard.roles.cuda.proofs.programs.common import (
    CPU,
    Device,
    Lines,
    card_rows,
    computed,
    convolution_case,
    difference,
    run,
    sentence_of,
    whole_numbers,
)
from hostwright.standard.roles.pytorch.proofs.programs.common import cpu, exact_float32, gpus


def main(lines: Lines, _arguments: dict[str, Any]) -> None:
    """All of it, the build first."""
    import torch

    lines.measure("pytorch", str(torch.__version__).partition("+")[0], "", CPU)
    lines.measure("built for cuda", torch.version.cuda or "none", "", CPU)
    lines.measure("cudnn", cudnn(), "", CPU)
    lines.measure("nccl", nccl(), "", CPU)
    flags = getattr(torch._C, "_cuda_getArchFlags", lambda: None)()  # get_arch_list() tells nothing without a card
    lines.measure("architectures", flags or "none", "", CPU)
    exact_float32()
    cards = gpus()
    computed(lines, [cpu(), *cards], {"product": product, "convolution": convolution})
    for number, device in enumerate(cards):
        card = torch.cuda.get_device_properties(number)
        card_rows(lines, device, card.name, f"{card.major}.{card.minor}")


def product(device: Device) -> float:
    """The product of whole numbers."""
    import torch

    left, right = whole_numbers()
    factors = (torch.tensor(matrix, dtype=torch.float32, device=device.name) for matrix in (left, right))
    return difference(torch.matmul(*factors).cpu().numpy(), left @ right)


def convolution(device: Device) -> float:
    """A convolution; on a GPU this is cuDNN's work."""
    import torch

    images, kernels, reference = convolution_case()
    inputs = torch.tensor(images.transpose(0, 3, 1, 2), device=device.name)
    weights = torch.tensor(kernels.transpose(3, 2, 0, 1), device=device.name)
    result = torch.nn.functional.conv2d(inputs, weights, padding=1)
    return difference(result.cpu().numpy().transpose(0, 2, 3, 1), reference)


def cudnn() -> str:
    """The version of the cuDNN that PyTorch opens: ``9.24.0``."""
    import torch

    try:
        number = torch.backends.cudnn.version()
    except RuntimeError as error:  # another cuDNN is found before its own
        return sentence_of(error)
    if not number:
        return "none"
    major = 10_000 if number >= 90_000 else 1_000
    return f"{number // major}.{number % major // 100}.{number % 100}"


def nccl() -> str:
    """The version of the NCCL that PyTorch opens: ``2.30.7``."""
    import torch

    try:
        return ".".join(str(number) for number in torch.cuda.nccl.version())
    except (AttributeError, RuntimeError):  # this build has none
        return "none"


if __name__ == "__main__":
    run(main)
