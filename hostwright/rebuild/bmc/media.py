"""The virtual CDs of a BMC: images on the network that it shows to its system as a disc in a drive."""

from __future__ import annotations

import re
from typing import Any

import sushy
from sushy import exceptions as sushy_errors

from hostwright.rebuild.bmc.errors import bmc_text

_DISCS = (sushy.VirtualMediaType.CD, sushy.VirtualMediaType.DVD)
_LOGIN = re.compile(r"//[^/@]*@")


class Drive:
    """One virtual drive for discs. What it raises is sushy's, and for the caller to explain."""

    def __init__(self, device: Any):
        self._device = device

    @property
    def inserted(self) -> bool | None:
        """Whether there is an image in it, asked afresh; ``None`` where the BMC does not say."""
        self._device.refresh()
        reported: bool | None = self._device.inserted
        return bool(self._device.image) or None if reported is None else reported

    @property
    def image(self) -> str:
        """What is in it, printable and without a login."""
        return _LOGIN.sub("//", bmc_text(self._device.image or self._device.image_name)) or "an image without a name"

    def insert(self, url: str) -> None:
        """Put the image at ``url`` in, write-protected."""
        self._device.insert_media(url)

    def eject(self) -> None:
        """Take the image out."""
        self._device.eject_media()


def drives(system: Any) -> tuple[Drive, ...]:
    """The virtual drives for discs of a system: its own, or those of its managers, where they were until
    ComputerSystem 1.13 (2020). Empty where the BMC has none."""
    for holder in (system, *_managers(system)):
        try:
            members = holder.virtual_media.get_members()
        except (sushy_errors.MissingAttributeError, sushy_errors.ResourceNotFoundError):
            continue
        discs = tuple(Drive(device) for device in members if any(kind in _DISCS for kind in device.media_types))
        if discs:
            return discs
    return ()


def _managers(system: Any) -> tuple[Any, ...]:
    try:
        return tuple(system.managers)
    except (sushy_errors.MissingAttributeError, sushy_errors.ResourceNotFoundError):
        return ()
