"""Drivers of sushy-tools' Redfish emulator: the lab's hosts as systems, and their virtual drives."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NoReturn

from sushy_tools import error
from sushy_tools.emulator.resources.systems.base import AbstractSystemsDriver

from hostwright.common.errors import LabError
from lab.bmc.power import Broken, Hosts, Impossible
from lab.bmc.settings import Media, Settings, read_settings, write_settings
from lab.records import find_machine, read_records

_DRIVE = "Cd"
_IMAGE = re.compile(r"(https?|nfs|cifs)://[^\s]{1,2000}")


class Systems(AbstractSystemsDriver):  # type: ignore[misc]  # the emulator has no types
    """System driver of the emulator for a lab's hosts. The identity of a system is the host name."""

    def __init__(self, hosts: Hosts):
        self._hosts, self._lab = hosts, hosts.lab

    @property
    def driver(self) -> str:
        """Name of this driver in the emulator's log."""
        return "<hostwright-lab>"

    @property
    def systems(self) -> list[str]:
        """Names of the lab's hosts."""
        return list(read_records(self._lab))

    def uuid(self, identity: str) -> str:
        """Return ``identity``, which the emulator accepts as a UUID. Raises `NotFound` for an unknown host."""
        # `identity` comes from a URL and must not be used as a path without this check
        if identity not in self.systems:
            raise error.NotFound(f"there is no system {identity}; there are {', '.join(self.systems)}")
        return identity

    def name(self, identity: str) -> str:
        """Return ``identity``, the name of the host."""
        return self.uuid(identity)

    def get_power_state(self, identity: str) -> str:
        """Return the power state ``On`` or ``Off``."""
        return self._hosts.power(self.uuid(identity))

    def set_power_state(self, identity: str, state: str) -> None:
        """Perform the Redfish reset of type ``state`` on the host."""
        try:
            self._hosts.reset(self.uuid(identity), state)
        except KeyError:
            raise error.BadRequest(f"ResetType {state} is not supported") from None
        except Impossible as reason:
            raise error.Conflict(str(reason)) from reason
        except (Broken, LabError) as reason:
            raise error.FishyError(str(reason)) from reason

    def settings(self, identity: str) -> Settings:
        """Return the BMC settings of the host."""
        return read_settings(self._lab, self.uuid(identity))

    def remember(self, identity: str, settings: Settings) -> None:
        """Store ``settings`` for the BMC of the host."""
        write_settings(self._lab, self.uuid(identity), settings)

    def get_boot_device(self, identity: str) -> str:
        """Return the target of the boot override, or the text ``None``."""
        return self.settings(identity).target

    def set_boot_device(self, *_: str) -> NoReturn:
        """Raise an error, because `lab.bmc.boot` handles boot overrides."""
        raise error.NotSupportedError("the boot override is set with PATCH on the system")

    def get_boot_mode(self, identity: str) -> str:
        """Return the boot mode ``UEFI`` or ``Legacy``."""
        return self.settings(identity).mode

    def get_http_boot_uri(self, identity: str) -> str:
        """Return the URL for UEFI HTTP boot."""
        return self.settings(identity).http_uri

    def get_nics(self, identity: str) -> list[dict[str, str]]:
        """Return the host's only network interface."""
        mac = find_machine(self._lab, self.uuid(identity)).mac
        return [{"id": mac, "mac": mac}]

    def set_boot_image(self, identity: str, device: str, boot_image: Any = None, write_protected: bool = True) -> None:
        """Do nothing, because `Drives` stores the image URL."""


class Drives:
    """Driver for one virtual CD drive per host."""

    devices = (_DRIVE,)

    def __init__(self, systems: Systems):
        self._systems = systems

    def get_device_name(self, identity: str, device: str) -> str:
        """Return the drive's name."""
        self._media(identity, device)
        return "Virtual CD"

    def get_device_media_types(self, identity: str, device: str) -> list[str]:
        """Return the media types of the drive."""
        self._media(identity, device)
        return ["CD", "DVD"]

    def get_device_image_info(self, identity: str, device: str) -> SimpleNamespace:
        """Return URL and state of the image in the drive."""
        media = self._media(identity, device)
        return SimpleNamespace(
            image_name=media.image.rpartition("/")[2],
            image_url=media.image,
            inserted=media.inserted,
            write_protected=media.write_protected,
            username="",
            password="",
            verify=False,
        )

    def insert_image(
        self,
        identity: str,
        device: str,
        image_url: object,
        *options: object,
        **_user_and_password: str,
    ) -> str:
        """Insert the image at ``image_url`` into the drive.

        Raises the emulator's errors for an invalid URL and for an occupied drive.
        """
        if self._media(identity, device).inserted:
            raise error.Conflict("an image is inserted already: eject it first")
        if not isinstance(image_url, str) or not _IMAGE.fullmatch(image_url):
            raise error.BadRequest("Image is not a URL with http, https, nfs or cifs")
        media = Media(image_url, *map(bool, options))
        self._systems.remember(identity, replace(self._systems.settings(identity), cd=media))
        return image_url

    def eject_image(self, identity: str, device: str) -> None:
        """Eject the image from the host's drive, if any."""
        self._media(identity, device)
        self._systems.remember(identity, replace(self._systems.settings(identity), cd=Media()))

    def _media(self, identity: str, device: str) -> Media:
        if device not in self.devices:
            raise error.NotFound(f"the system has no drive {device}")
        return self._systems.settings(identity).cd
