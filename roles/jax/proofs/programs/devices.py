"""The versions of JAX and its plugin, the devices that they find, and their results beside those of NumPy."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
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
    whole_numbers,
)
from hostwright.standard.roles.jax.proofs.programs.common import cpu, found, gpus


def main(lines: Lines, arguments: dict[str, Any]) -> None:
    """All of it, the versions first."""
    import jax

    for package in arguments["packages"]:
        lines.measure(package, installed(package), "", CPU)
    jax.config.update("jax_default_matmul_precision", "highest")  # also of convolutions: no TF32
    cards = gpus()
    computed(lines, [cpu(), *cards], {"product": product, "convolution": convolution})
    for device in cards:
        card = found(device)
        card_rows(lines, device, card.device_kind, str(getattr(card, "compute_capability", "not told")))


def installed(package: str) -> str:
    """The version of a package in this environment."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def product(device: Device) -> float:
    """The product of whole numbers, compiled by XLA."""
    import jax

    left, right = whole_numbers()
    factors = (jax.device_put(matrix.astype("float32"), found(device)) for matrix in (left, right))
    return difference(jax.jit(jax.numpy.matmul)(*factors), left @ right)


def convolution(device: Device) -> float:
    """A convolution, compiled by XLA; on a GPU this is cuDNN's work."""
    import jax

    images, kernels, reference = convolution_case()
    convolved = jax.jit(
        lambda inputs, weights: jax.lax.conv_general_dilated(
            inputs, weights, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
    )
    return difference(convolved(*(jax.device_put(each, found(device)) for each in (images, kernels))), reference)


if __name__ == "__main__":
    run(main)
