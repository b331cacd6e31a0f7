"""Shared by JAX's programs: the devices that it finds on this host."""

from __future__ import annotations

from typing import Any

from hostwright.standard.roles.cuda.proofs.programs.common import CPU, Device, nvidia_smi, on_bus


def gpus() -> list[Device]:
    """The GPUs that JAX can use, named by UUID and model.

    JAX numbers them as CUDA does, which ``run`` has told to go by their addresses on the bus.
    """
    import jax

    rows = sorted((on_bus(bus), uuid) for bus, uuid in nvidia_smi("pci.bus_id,uuid"))
    cards = [device for device in jax.local_devices() if device.platform == "gpu"]
    uuids = [rows[card.local_hardware_id][1] if card.local_hardware_id < len(rows) else "GPU" for card in cards]
    return [Device(f"gpu:{number}", f"{uuids[number]} ({card.device_kind})") for number, card in enumerate(cards)]


def cpu() -> Device:
    """The processor."""
    return Device("cpu:0", CPU)


def found(device: Device) -> Any:
    """JAX's own value for a device."""
    import jax

    platform, _, number = device.name.partition(":")
    return jax.local_devices(backend=platform)[int(number)]
