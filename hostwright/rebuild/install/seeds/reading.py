"""Reader for a host's installation settings in the inventory, with a check for conflicting settings.

``hostwright_install`` and ``hostwright_reinstall`` can each be a mapping, or one variable per field
(``hostwright_install_disk``). Fields of the host override fields of its groups.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import replace

from hostwright.common.errors import InputError, InputErrors
from hostwright.inventory import Host, bind, definitions
from hostwright.rebuild.install.seeds import fields as v
from hostwright.rebuild.install.seeds.settings import Install, Reinstall

INSTALL, REINSTALL = "hostwright_install", "hostwright_reinstall"
#: error text for a seed with a fixed path but without allowed clients: any client could fetch the host key
WHO_IS_NEEDED = "is needed with a fixed path: an address, a network, or any"
#: kernel argument that makes Debian's installer accept any TLS certificate
UNCHECKED = "debian-installer/allow_unauthenticated_ssl"
FIRST_AUTOINSTALL = (20, 4)  #: first Ubuntu release whose installer supports autoinstall


def read_install(host: Host) -> Install | None:
    """Settings for an installation by Hostwright, or ``None``. Raises ``InputErrors`` with all invalid settings."""
    if not _wanted(host, INSTALL):
        return None
    bound = bind(Install, INSTALL, host)
    user = bound.user or host.user or ""
    install = replace(bound, hostname=bound.hostname or _first_label(host.name), user=user)
    _refuse(host, INSTALL, _conflicts(install))
    return install


def read_reinstall(host: Host) -> Reinstall | None:
    """Settings of the site's reinstall command, or ``None``. Raises ``InputErrors`` with all invalid settings."""
    if not _wanted(host, REINSTALL):
        return None
    reinstall = bind(Reinstall, REINSTALL, host)
    _refuse(host, REINSTALL, _conflicts_given(reinstall) if reinstall.host_keys == "given" else ())
    return reinstall


def _wanted(host: Host, name: str) -> bool:
    """Raises ``InputError`` if the variables ``INSTALL`` and ``REINSTALL`` of the host are both set."""
    given = {variable: _written(host, variable) for variable in (INSTALL, REINSTALL)}
    if given[INSTALL] and given[REINSTALL]:
        raise InputError(
            f"{REINSTALL} and {INSTALL} are both set, but only one of them can install the host: remove one",
            _place(host, REINSTALL, ""),
        )
    return given[name]


def _written(host: Host, name: str) -> bool:
    if name in host.vars:
        return host.get(name) is not None
    return any(other.startswith(f"{name}_") for other in host.vars)


def _first_label(name: str) -> str:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        label = name.partition(".")[0]
        return label if v.is_hostname(label) else ""
    return ""


def _conflicts(install: Install) -> Iterator[tuple[str, str]]:
    if not install.hostname:
        yield "hostname", "is needed: the host's name in the inventory cannot be a system's hostname"
    if not install.user:
        yield "user", "is needed: the user that the new system gets, and that Hostwright logs in as"
    elif install.user in v.RESERVED_USERS:
        yield ("user", f"{install.user!r} cannot be created by an installer; name another user to log in as")
    if not install.path:
        yield "path", "is needed: the name under which the installer finds its seed"
    if not (install.allow_from or install.network.fixed):
        yield "allow_from", WHO_IS_NEEDED
    if not install.ssh_keys:
        yield "ssh_keys", "is empty: nobody could log in to the new system"
    if install.https and any(argument.startswith(UNCHECKED) for argument in install.kernel_arguments):
        yield "kernel_arguments", f"with https, {UNCHECKED} makes the installer trust any server: remove it"
    if install.boot == "media" and not install.image:
        yield "image", "is needed to boot from media: the URL of the installer's ISO, as the BMC reaches it"
    if install.layout == "raid1" and install.second_disk is None:
        yield "second_disk", "is needed for the layout raid1"
    elif install.layout != "raid1" and install.second_disk is not None:
        yield "second_disk", f"is not used by the layout {install.layout}: remove it, or set layout: raid1"
    elif install.second_disk == install.disk:
        yield "second_disk", "is the same as disk"
    yield from _conflicts_debian(install) if install.os == "debian" else _conflicts_ubuntu(install)


def _conflicts_given(reinstall: Reinstall) -> Iterator[tuple[str, str]]:
    if not reinstall.serve:
        yield "serve", "is needed with host_keys: given: this machine's address and a port, like 10.0.0.1:8098"
    if reinstall.path and not reinstall.allow_from:
        yield "allow_from", WHO_IS_NEEDED


def _conflicts_ubuntu(install: Install) -> Iterator[tuple[str, str]]:
    year, _, month = install.release.partition(".")
    release = (int(year), int(month)) if len(month) == 2 else None
    if release is None or release < FIRST_AUTOINSTALL:
        yield (
            "release",
            f"found {install.release!r}, expected a release of Ubuntu that takes autoinstall: '20.04' or later",
        )
    for key, disk in (("disk", install.disk), ("second_disk", install.second_disk)):
        if disk is not None and disk.path.startswith("/dev/disk/"):
            yield key, "Ubuntu's installer knows a path only as the kernel names it (/dev/sda); give serial or model"
        # The installer of Ubuntu 20.04 ignores ``vendor`` (supported since subiquity 21.01.1) and ``size: smallest``
        # (since 20.06.1).
        if disk is not None and release == FIRST_AUTOINSTALL and (disk.vendor or disk.size == "smallest"):
            yield (
                key,
                f"the first installers of Ubuntu {install.release} ignore vendor and size: smallest, and would "
                "overwrite another disk: give serial or model",
            )


def _conflicts_debian(install: Install) -> Iterator[tuple[str, str]]:
    if "." in install.release:
        yield "release", f"found {install.release!r}, expected a release of Debian, like '11'"
    if install.layout == "raid1":
        yield "layout", f"raid1 is written for Ubuntu's installer only: use lvm or direct, or {REINSTALL}"
    if set(install.disk.match) != {"path"}:
        yield "disk", "Debian's installer needs a path; /dev/disk/by-id/… names a disk by its model and serial number"
    if install.network.fixed and not (install.network.gateway and install.network.nameservers):
        yield "network", "Debian's installer needs gateway and nameservers for a fixed address"


def _refuse(host: Host, name: str, wrong: Iterable[tuple[str, str]]) -> None:
    mistakes = [InputError(f"{name}.{key}: {sentence}", _place(host, name, key)) for key, sentence in wrong]
    if mistakes:
        raise InputErrors(mistakes)


def _place(host: Host, name: str, key: str) -> str | None:
    given = definitions(host, name, key) if key else ()
    if given:
        return given[-1].origin.exact
    whole = host.vars.get(name) or next(
        (variable for other, variable in host.vars.items() if other.startswith(f"{name}_")), None
    )
    return whole.origin.exact if whole else None
