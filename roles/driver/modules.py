"""The two kinds of NVIDIA's kernel module, open and proprietary: which of them a branch has, and which a card needs.

Sources: NVIDIA's driver installation guide, "Kernel Modules" (its editions for R610 and R620), and the README of
open-gpu-kernel-modules. The installer's options are those of nvidia-installer's ``option_table.h``, and the first
release that has one is the first tag of that repository with it.
"""

from __future__ import annotations

from typing import Literal

from hostwright.roles import Misfit
from hostwright.standard.roles.driver.chips import Architecture, chips

Kind = Literal["open", "proprietary"]
Gpus = tuple[tuple[int, int], ...]  #: PCI ids (vendor, device) of display controllers

FIRST_OPEN = 515  #: the first branch that has the open module
OPEN_PREFERRED = 560  #: the first branch whose installer prefers it
ONLY_OPEN = 620  #: the first branch that has no other
TYPE_OPTION = 555  #: the first branch whose installer knows --kernel-module-type
#: the first release whose installer builds the module itself, loads it for a test and then hands it to DKMS; before,
#: DKMS builds and signs it, and the installer gives DKMS up for a key
BUILDS_ITSELF = (520, 56, 6)
SKIPS_LOAD = (550, 40, 7)  #: the first release whose installer knows --skip-module-load

#: PCI ids of Grace Hopper (GH200 96 GB and 480 GB, GH200 144 GB): its Hopper runs with the open module alone
GRACE_HOPPER = frozenset({0x2342, 0x2348})

_SOURCE = "NVIDIA driver installation guide, kernel modules"
_LICENSES: dict[str, Kind] = {"Dual MIT/GPL": "open", "NVIDIA": "proprietary"}


def branch_of(driver: str) -> int:
    """The number of a driver's branch: 470 of 470.182.03."""
    return int(driver.partition(".")[0])


def kinds_of(driver: str) -> tuple[Kind, ...]:
    """The kinds of module that a driver has, the preferred one first."""
    branch = branch_of(driver)
    if branch < FIRST_OPEN:
        return ("proprietary",)
    if branch >= ONLY_OPEN:
        return ("open",)
    return ("open", "proprietary") if branch >= OPEN_PREFERRED else ("proprietary", "open")


def needed_by(gpus: Gpus) -> dict[Kind, str]:
    """The kinds of module that these cards cannot do without, each with a card that needs it."""
    needed: dict[Kind, str] = {}
    for gpu in gpus:
        for chip in chips((gpu,)):
            if chip.architecture < Architecture.TURING:
                needed.setdefault("proprietary", f"{chip.architecture} ({chip.name})")
            elif chip.architecture >= Architecture.BLACKWELL:
                needed.setdefault("open", f"{chip.architecture} ({chip.name})")
            elif gpu[1] in GRACE_HOPPER:
                needed.setdefault("open", f"Grace Hopper ({chip.name})")
    return needed


def module_kind(wanted: str, driver: str, gpus: Gpus) -> Kind:
    """The kind of module for these cards: ``wanted``, or for ``auto`` what they need, else what the driver prefers.

    >>> module_kind("auto", "580.159.04", ((0x10DE, 0x1DB4),))  # V100
    'proprietary'
    >>> module_kind("auto", "580.159.04", ((0x10DE, 0x20B0),))  # A100
    'open'
    """
    if wanted == "auto":
        preferred = kinds_of(driver)
        return next((kind for kind in preferred if kind in needed_by(gpus)), preferred[0])
    return "open" if wanted == "open" else "proprietary"


def misfit(wanted: str, driver: str, gpus: Gpus) -> Misfit | None:
    """Why no module of this driver, or not the wanted one, runs these cards."""
    there, needed = kinds_of(driver), needed_by(gpus)
    if wanted != "auto" and wanted not in there:
        sentence = f"driver {driver} has no {wanted} kernel module: {_lacking(driver)}"
        return Misfit("driver-module", sentence, _SOURCE, "module: auto")
    if len(needed) > 1:
        both = " and ".join(f"{card} needs the {kind} one" for kind, card in needed.items())
        return Misfit("gpu-module", f"no kernel module runs all GPUs: {both}", _SOURCE, "one kind of GPU in a host")
    for kind, card in needed.items():
        if kind not in there:
            sentence = f"{card} GPUs need the {kind} kernel module, and driver {driver} has none: {_lacking(driver)}"
            return Misfit("gpu-module", sentence, _SOURCE)
        if wanted not in ("auto", kind):
            sentence = f"{card} GPUs need the {kind} kernel module, and the stack wants the {wanted} one"
            return Misfit("gpu-module", sentence, _SOURCE, "module: auto")
    return None


def _lacking(driver: str) -> str:
    return f"the open one came with R{FIRST_OPEN}" if branch_of(driver) < FIRST_OPEN else f"R{ONLY_OPEN} ended it"


def installer_flags(driver: str, kind: Kind) -> tuple[str, ...]:
    """The options with which the ``.run`` installs this kind: none where the driver has no other."""
    if len(kinds_of(driver)) == 1:
        return ()
    if branch_of(driver) >= TYPE_OPTION:
        return (f"--kernel-module-type={kind}",)
    return (f"--kernel-module-build-directory={'kernel-open' if kind == 'open' else 'kernel'}",)


def signing_flags(driver: str, secret: str, certificate: str) -> tuple[str, ...]:
    """The options with which the ``.run`` signs the module that it builds; without them a silent one does not, and
    under Secure Boot its test load ends the installation. None without a key, and where DKMS builds the module."""
    if not secret or _release(driver) < BUILDS_ITSELF:
        return ()
    return (f"--module-signing-secret-key={secret}", f"--module-signing-public-key={certificate}")


def unloaded_flags(driver: str) -> tuple[str, ...]:
    """The options with which the ``.run`` loads no module, and installs while nouveau has a card; none for a release
    that does not know them."""
    return ("--skip-module-load", "--no-nouveau-check") if _release(driver) >= SKIPS_LOAD else ()


def _release(driver: str) -> tuple[int, ...]:
    return tuple(map(int, driver.split(".")))


def kind_of_license(license_: str) -> Kind | None:
    """The kind of a module by its licence, as modinfo prints it; ``None`` for any other text."""
    return _LICENSES.get(license_)
