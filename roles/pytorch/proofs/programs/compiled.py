"""Compile a network by ``torch.compile`` on each device; compare its prediction and gradient.

Triton and Inductor call the host's C++ compiler, which needs Python's headers.
"""

from __future__ import annotations

from typing import Any

from hostwright.standard.roles.cuda.proofs.programs.common import (
    OF_LARGEST_VALUE,
    Device,
    Lines,
    difference,
    run,
    sentence_of,
)
from hostwright.standard.roles.pytorch.proofs.programs.common import cpu, exact_float32, gpus


def main(lines: Lines, _arguments: dict[str, Any]) -> None:
    """The processor, then each card; one that cannot compile keeps no other from it."""
    import torch

    exact_float32()
    cards = gpus()
    for card in cards:
        lines.measure("gpu", torch.cuda.get_device_name(card.name), "", card.label)
    for device in [cpu(), *cards]:
        try:
            compiled(lines, device)
        except Exception as error:  # noqa: BLE001 - compilers have many
            told = [line.strip() for line in str(error).splitlines() if "error: " in line]  # the compiler's own
            why = ": ".join([sentence_of(error), *told[:1]])
            lines.tell(error=f"torch.compile fails on {device.label}: {why}"[:500])
    if not cards:
        lines.without_gpu("gpu", "")
        for name in ("compiled", "compiled gradient"):
            lines.without_gpu(name, OF_LARGEST_VALUE)


def compiled(lines: Lines, device: Device) -> None:
    """Compare with the same network in float64 on the processor."""
    import torch

    torch._dynamo.reset()
    torch.manual_seed(7)
    first, last = torch.nn.Linear(256, 512), torch.nn.Linear(512, 64)
    model = torch.nn.Sequential(first, torch.nn.LayerNorm(512), torch.nn.GELU(), last, torch.nn.Softmax(1))
    inputs = torch.randn(512, 256)
    reference = [part.numpy() for part in computed(model.double(), inputs.double())]
    model, inputs = model.float().to(device.name), inputs.to(device.name)
    fast = torch.compile(model)
    parts = [part.cpu().numpy() for part in computed(fast, inputs)]
    for name, part, exact in zip(("compiled", "compiled gradient"), parts, reference):
        lines.measure(name, difference(part, exact), OF_LARGEST_VALUE, device.label)


def computed(model: Any, inputs: Any) -> Any:
    """The prediction of a network, and the gradient of its inputs."""
    given = inputs.clone().requires_grad_()
    result = model(given)
    (result**2).sum().backward()
    return result.detach(), given.grad


if __name__ == "__main__":
    run(main)
