"""Orders to a BMC for the power and the next boot of its host, and queries of the host's status.

After an order, the BMC is queried until it reports the ordered state. ``turn_on`` and ``turn_off`` send no order if the
BMC already reports that state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

import sushy
from sushy import exceptions as sushy_errors

from hostwright.common.durations import Clock
from hostwright.common.text import shown_limit
from hostwright.rebuild.bmc.errors import BmcDenied, BmcError, BmcRefused, BmcStuck, bmc_text
from hostwright.rebuild.bmc.explaining import explained
from hostwright.rebuild.bmc.link import CONNECT_S, BmcLink
from hostwright.rebuild.bmc.settings import Bmc

POLL_S = 2.0  #: seconds between two queries of the BMC for the effect of a request
NAMED = 8  #: maximum number of Redfish systems or boot sources that an error message names
_NO_OVERRIDE = (sushy.BootSource.NONE, sushy.BootSource.HDD, None)


class Power(StrEnum):
    """Power state of a host, as its BMC reports it."""

    ON = "on"
    OFF = "off"
    TURNING_ON = "turning on"
    TURNING_OFF = "turning off"
    UNKNOWN = "unknown"


_POWER = {
    sushy.PowerState.ON: Power.ON,
    sushy.PowerState.OFF: Power.OFF,
    sushy.PowerState.POWERING_ON: Power.TURNING_ON,
    sushy.PowerState.POWERING_OFF: Power.TURNING_OFF,
}


@dataclass(frozen=True, slots=True)
class Status:
    """Status of a host for display; fields that the BMC does not report are empty."""

    power: Power
    model: str = ""
    manufacturer: str = ""
    serial: str = ""
    bios: str = ""
    health: str = ""  #: health of the host: ``OK``, ``Warning`` or ``Critical``
    boot_override: str = ""  #: source of the next boot, such as ``Pxe (Once)``; empty if the firmware decides
    media: tuple[str, ...] = ()  #: names of the images in the BMC's virtual drives


class Controller:
    """Session with a host's BMC. Methods raise ``BmcError`` if a request fails. ``Bmc.timeout_s`` limits each order."""

    def __init__(self, bmc: Bmc, link: BmcLink, system: Any, clock: Clock):
        self.bmc = bmc
        self._link, self._system, self._clock = link, system, clock

    def __enter__(self) -> Controller:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Log out of the BMC. Never raises an error."""
        self._link.close()

    @property
    def console_hint(self) -> str:
        """Text from the inventory on how to access the host's console, or empty."""
        return self.bmc.console

    def power(self) -> Power:
        """Power state that the BMC reports. The report may be wrong."""
        with self._asking("report its power state"):
            return self._look()

    def turn_on(self) -> None:
        """Power on the host, and wait until the BMC reports "on". Raises ``BmcStuck`` after ``Bmc.timeout_s``."""
        now = self.power()
        if now is Power.TURNING_OFF:
            self._await(Power.OFF, "power off")
        if now not in (Power.ON, Power.TURNING_ON):
            self._reset("power on", sushy.ResetType.ON, sushy.ResetType.FORCE_ON)
        self._await(Power.ON, "power on")

    def turn_off(self, *, gracefully: bool = False) -> None:
        """Cut the host's power, and wait until the BMC reports "off". Raises ``BmcStuck`` after ``Bmc.timeout_s``.

        With ``gracefully``, first request a shutdown of the operating system, and wait up to ``Bmc.timeout_s`` for the
        shutdown.
        """
        if self.power() is Power.OFF:
            return
        if gracefully:
            with suppress(BmcRefused, BmcStuck):
                self._reset("shut down", sushy.ResetType.GRACEFUL_SHUTDOWN)
                self._await(Power.OFF, "shut down")
                return
        self._reset("power off", sushy.ResetType.FORCE_OFF)
        self._await(Power.OFF, "power off")

    def cycle(self) -> None:
        """Restart the host without a shutdown of its operating system. Power on the host if it is off."""
        if self.power() in (Power.OFF, Power.TURNING_OFF):
            return self.turn_on()
        try:
            self._reset("restart", sushy.ResetType.FORCE_RESTART)
        except BmcRefused:
            self.turn_off()
            return self.turn_on()
        return self._await(Power.ON, "restart")

    def boot_once(self, source: Literal["network", "media"], *, image_url: str = "") -> None:
        """Set the boot source for the next start of the host only. Does not restart the host.

        ``network`` is PXE or, without PXE, UEFI HTTP as DHCP directs. For ``media``, the BMC fetches the image at
        ``image_url`` and attaches it as a CD.
        """
        if source == "network":
            self._override("the network", sushy.BootSource.PXE, sushy.BootSource.UEFI_HTTP)
            return
        if not image_url.startswith(("http://", "https://")):
            raise BmcError(
                self.bmc.host, "booting from an image needs the image's URL, starting with http:// or https://"
            )
        drive = self._drive()
        self._eject(drive)
        with self._asking("insert the image"):
            drive.insert(image_url)
        self._await_state(lambda: drive.inserted is not False, "accepted the image, but reports that none is inserted")
        try:
            self._override("the image", sushy.BootSource.CD, sushy.BootSource.USB_CD)
        except BmcError:
            with suppress(BmcError):  # Without the ejection, a later boot from the image would wipe the disk.
                self._eject(drive)
            raise

    def boot_from_disk(self) -> None:
        """Make the next start boot from the disk: cancel an unused ``boot_once``, and eject virtual images."""
        with self._asking("clear its boot override"):
            self._system.refresh()
            if self._overridden:
                offered = self._system.get_allowed_system_boot_source_values()
                target = sushy.BootSource.NONE if sushy.BootSource.NONE in offered else sushy.BootSource.HDD
                self._system.set_system_boot_options(target, enabled=sushy.BootSourceOverrideEnabled.DISABLED)
                self._system.refresh()
                if self._overridden:
                    raise self._error(f"accepted the order to boot from disk, but reports {self._boot_override()!r}")
        for drive in self._drives():
            self._eject(drive)

    def status(self) -> Status:
        """Query the BMC for the host's status."""
        with self._asking("show its system"):
            power, system = self._look(), self._system
            health = system.status and (system.status.health_rollup or system.status.health)
            texts = (system.model, system.manufacturer, system.serial_number, system.bios_version)
            model, manufacturer, serial, bios = (bmc_text(text, self._link.secrets) for text in texts)
            override = self._boot_override() if self._overridden else ""
        drives_there = self._drives()
        with self._asking("show its virtual media"):
            media = tuple(drive.image for drive in drives_there if drive.inserted)
        return Status(power, model, manufacturer, serial, bios, health.value if health else "", override, media)

    @property
    def _overridden(self) -> bool:
        boot = self._system.boot
        disabled = sushy.BootSourceOverrideEnabled.DISABLED
        return boot is not None and boot.enabled is not disabled and boot.target not in _NO_OVERRIDE

    def _boot_override(self) -> str:
        boot = self._system.boot
        return f"{boot.target.value} ({boot.enabled.value if boot.enabled else 'unspecified'})"

    def _look(self) -> Power:
        self._system.refresh()
        return _POWER.get(self._system.power_state, Power.UNKNOWN)

    def _reset(self, order: str, *kinds: Any) -> None:
        with self._asking(order):
            known = self._system.get_allowed_reset_system_values()
            kind = next((kind for kind in kinds if kind in known), None)
            if kind is None:
                names = ", ".join(sorted(kind.value for kind in known))
                raise BmcRefused(
                    self.bmc.host, f"the BMC at {self.bmc.url} cannot {order}: the BMC supports only {names}"
                )
            self._system.reset_system(kind)

    def _await(self, wanted: Power, order: str) -> None:
        """Wait until the BMC reports the power state ``wanted``.

        Errors of the BMC, except a refused login, are ignored until ``Bmc.timeout_s`` has passed.
        """
        try:
            self._await_state(lambda: self._look() is wanted, "")
        except BmcStuck:
            says = _POWER.get(self._system.power_state, Power.UNKNOWN)
            otherwise = "the host's console, its power supplies and the log of the BMC"
            look = f"the host's console ({self.console_hint})" if self.console_hint else otherwise
            raise BmcStuck(
                self.bmc.host,
                f"the BMC at {self.bmc.url} accepted the order to {order}, but still reports {says.value} after "
                f"{shown_limit(self.bmc.timeout_s)}: check {look}",
            ) from None

    def _await_state(self, reached: Callable[[], bool], otherwise: str) -> None:
        """Wait until ``reached`` is true. After ``Bmc.timeout_s``, raise the last error of ``reached``, or ``BmcStuck``
        with the text ``otherwise``.
        """
        deadline_s = self._clock.now_s() + self.bmc.timeout_s
        error: BmcError | None
        while True:
            try:
                with self._asking("report its state", left_s=deadline_s + CONNECT_S - self._clock.now_s()):
                    if reached():
                        return
                    error = None
            except BmcDenied:
                raise
            except BmcError as caught:
                error = caught
            left_s = deadline_s - self._clock.now_s()
            if left_s <= 0:
                raise error or BmcStuck(self.bmc.host, f"the BMC at {self.bmc.url} {otherwise}")
            self._clock.sleep(min(POLL_S, left_s))

    def _override(self, what: str, *targets: Any) -> None:
        with self._asking(f"boot from {what} once"):
            self._system.refresh()
            offered = self._system.get_allowed_system_boot_source_values()
            target = next((target for target in targets if target in offered), None)
            if target is None:
                names = ", ".join(sorted(source.value for source in offered)[:NAMED]) or "nothing"
                raise self._error(f"cannot boot the host from {what}: the BMC supports only {names}")
            self._system.set_system_boot_options(target, enabled=sushy.BootSourceOverrideEnabled.ONCE)

        def taken() -> bool:
            self._system.refresh()
            # If the system has a settings resource, the boot target changes only at the restart. For Supermicro, sushy
            # replaces Cd by UsbCd.
            return bool(self._system._settings) or self._system.boot.target in targets

        self._await_state(taken, f"accepted the order to boot from {what} once, but does not report it")

    def _drives(self) -> tuple[Drive, ...]:
        with self._asking("show its virtual media"):
            return drives(self._system)

    def _drive(self) -> Drive:
        available = self._drives()
        if not available:
            raise self._error("has no virtual CD: boot from the network, or check whether virtual media need a licence")
        return available[0]

    def _eject(self, drive: Drive) -> None:
        with self._asking("eject the image"):
            if not drive.inserted:
                return
            drive.eject()
        self._await_state(lambda: not drive.inserted, "accepted the order to eject the image, but still reports it")

    def _error(self, sentence: str) -> BmcError:
        return BmcError(self.bmc.host, f"the BMC at {self.bmc.url} {sentence}")

    @contextmanager
    def _asking(self, what: str, left_s: float = 0.0) -> Iterator[None]:
        """Limit requests to ``left_s`` seconds (default: ``Bmc.timeout_s``), and convert their errors to
        ``BmcError``.
        """
        self._link.deadline_s = self._clock.now_s() + (left_s or self.bmc.timeout_s)
        with explained(self.bmc, self._link, what):
            yield


_DISCS = (sushy.VirtualMediaType.CD, sushy.VirtualMediaType.DVD)
_LOGIN = re.compile(r"//[^/@]*@")


class Drive:
    """A BMC's virtual drive for CDs or DVDs. Methods raise sushy's errors."""

    def __init__(self, device: Any):
        self._device = device

    @property
    def inserted(self) -> bool | None:
        """Whether the drive has an image; ``None`` if the BMC does not report this."""
        self._device.refresh()
        reported: bool | None = self._device.inserted
        return bool(self._device.image) or None if reported is None else reported

    @property
    def image(self) -> str:
        """URL or name of the image in the drive, for display, without credentials."""
        return _LOGIN.sub("//", bmc_text(self._device.image or self._device.image_name)) or "an image without a name"

    def insert(self, url: str) -> None:
        """Insert the image at ``url`` into the drive, write-protected."""
        self._device.insert_media(url)

    def eject(self) -> None:
        """Eject the image from the drive."""
        self._device.eject_media()


def drives(system: Any) -> tuple[Drive, ...]:
    """Return the virtual drives for CDs or DVDs of the Redfish ``system``; empty if the BMC has none."""
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
