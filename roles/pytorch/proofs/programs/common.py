"""Shared by PyTorch's programs: the devices that it finds, exact products, and the network that is trained."""

from __future__ import annotations

from typing import Any

from hostwright.standard.roles.cuda.proofs.programs.common import CPU, Device, on_bus, uuids


def gpus() -> list[Device]:
    """The GPUs that PyTorch can use, named by UUID and model."""
    import torch

    known = uuids()
    cards = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
    return [Device(f"cuda:{number}", f"{_uuid(card, known)} ({card.name})") for number, card in enumerate(cards)]


def _uuid(card: Any, known: dict[str, str]) -> str:
    """nvidia-smi's by the address on the bus, which is also that of a part of the card; else PyTorch's."""
    if hasattr(card, "pci_bus_id"):
        bus = f"{card.pci_domain_id:04x}:{card.pci_bus_id:02x}:{card.pci_device_id:02x}.0"
        return known.get(on_bus(bus), f"GPU {bus}")
    return f"GPU-{card.uuid}"


def cpu() -> Device:
    """The processor."""
    return Device("cpu", CPU)


def exact_float32() -> None:
    """From now on no float32 product or convolution is rounded to TF32, as Ampere's cards and later would."""
    import torch

    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False


def synchronize(device: Device) -> None:
    """Wait until all that a card was given is computed."""
    import torch

    if device.name != "cpu":
        torch.cuda.synchronize(device.name)


def network() -> Any:
    """784-128-10, whose last layer gives logits; the same weights each time. Its activation has no kink: see
    ``network`` of TensorFlow's programs."""
    import torch

    torch.manual_seed(6)
    return torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.Tanh(), torch.nn.Linear(128, 10))
