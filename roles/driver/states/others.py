"""Resources that keep other drivers, such as nouveau, away from a host with the driver role."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.resources import (
    UPDATE_INITRAMFS,
    Absent,
    Answers,
    DebsAbsent,
    Disturbing,
    File,
    Initramfs,
    Probe,
    Resource,
    passes,
)
from hostwright.roles import RoleContext, sh
from hostwright.standard.roles.driver.section import DRIVER_PACKAGES, DriverSection
from hostwright.standard.roles.driver.states.modprobe import ModulesAllowed
from hostwright.standard.roles.driver.states.nouveau import NouveauGone

PREFERENCES = "/etc/apt/preferences.d/hostwright-no-other-driver"
NOUVEAU_OFF = "/etc/modprobe.d/hostwright-nouveau.conf"
MARKER = "/usr/lib/nvidia/alternate-install-present"
_MODULE = "/sys/module/nvidia"
DRIVER_LOADED = Probe(sh("test -d %s", _MODULE), part=passes.directory(_MODULE))


def no_other_driver(ctx: RoleContext) -> Iterator[Resource]:
    """Yield resources that set apt pins, remove other drivers, block nouveau, and allow nvidia's modules."""
    section = ctx.section(DriverSection)
    # The pattern "libnvidia-*" would also match the container toolkit's library.
    pinned = [name for name in DRIVER_PACKAGES if name != "libnvidia-*"]
    text = ctx.render(
        "driver/no-other-driver.pref.j2", packages=pinned, pins=section.packages, precompiled=section.precompiled_names
    )
    yield File(PREFERENCES, text)
    where = "packages of the stack" if section.packages else "the .run"
    other = DebsAbsent(
        DRIVER_PACKAGES,
        f"the driver comes from {where}, and two drivers conflict",
        section.kept,
        instead=section.words,
    )
    yield Disturbing(other, "removes a driver", Answers(DRIVER_LOADED))
    if not section.packages:
        yield Absent(MARKER, "left by a distribution's driver; stops the installer")

    yield File(NOUVEAU_OFF, ctx.render("driver/nouveau-off.conf.j2"), then=(UPDATE_INITRAMFS,))
    yield Initramfs(after=NOUVEAU_OFF)
    yield NouveauGone()
    yield ModulesAllowed(section.renamed)
