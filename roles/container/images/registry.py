"""The registry of images that a host uses, which a role above this one provides."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from hostwright.cli.verb import TargetHost


@runtime_checkable
class ImageRegistry(Protocol):
    """Variables of a role that provides a registry of images. A host has at most one such role."""

    @property
    def image_registry(self) -> str:
        """Name and port under which the host reaches the registry, such as ``reg01:5000``; empty: it has none."""

    @property
    def serves_images(self) -> bool:
        """Whether the registry runs on this host."""


def registry_at(target: TargetHost) -> str:
    """Name and port of the host's registry; empty where it has none."""
    return next((v.image_registry for v in target.variables.values() if isinstance(v, ImageRegistry)), "")


def serves_images(target: TargetHost) -> bool:
    """Whether the host runs a registry."""
    return any(isinstance(v, ImageRegistry) and v.serves_images for v in target.variables.values())
