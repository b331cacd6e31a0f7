"""The two kinds of NVIDIA's kernel module, open and proprietary, by driver branch and by GPU.

Sources: NVIDIA's driver installation guide, "Kernel Modules" (R610 and R620), the README of open-gpu-kernel-modules,
and nvidia-installer's ``option_table.h``, whose tags show the first release with an option.
"""

from __future__ import annotations

from typing import Literal

from hostwright.roles import Misfit
from hostwright.standard.roles.driver.chips import Architecture, chips

Kind = Literal["open", "proprietary"]
Gpus = tuple[tuple[int, int], ...]  #: PCI ids (vendor, device) of a host's display controllers

FIRST_OPEN = 515  #: first driver branch with the open module
OPEN_PREFERRED = 560  #: first driver branch with an installer that prefers the open module
ONLY_OPEN = 620  #: first driver branch that has only the open module
TYPE_OPTION = 555  #: first driver branch with the installer option --kernel-module-type
#: first driver release with an installer that builds the module, and then passes it to DKMS. In earlier releases, DKMS
#: builds and signs the module.
BUILDS_ITSELF = (520, 56, 6)
SKIPS_LOAD = (550, 40, 7)  #: first driver release with the installer option --skip-module-load

#: PCI IDs of Grace Hopper GPUs (GH200 96 GB, 144 GB and 480 GB), which need the open module
GRACE_HOPPER = frozenset({0x2342, 0x2348})

_SOURCE = "NVIDIA driver installation guide, kernel modules"
_LICENSES: dict[str, Kind] = {"Dual MIT/GPL": "open", "NVIDIA": "proprietary"}


def branch_of(driver: str) -> int:
    """Return the branch number of the driver version ``driver``: 470 for 470.182.03."""
    return int(driver.partition(".")[0])


def kinds_of(driver: str) -> tuple[Kind, ...]:
    """Return the kinds of kernel module in the driver version ``driver``, preferred kind first."""
    branch = branch_of(driver)
    if branch < FIRST_OPEN:
        return ("proprietary",)
    if branch >= ONLY_OPEN:
        return ("open",)
    return ("open", "proprietary") if branch >= OPEN_PREFERRED else ("proprietary", "open")


def needed_by(gpus: Gpus) -> dict[Kind, str]:
    """Return kind of kernel module → name of a GPU in ``gpus`` that requires this kind."""
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
    """Return ``wanted``; for ``auto``, return the kind of kernel module that ``gpus`` require, else the preferred kind.

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
    """Return the reason why ``driver`` has no module of the kind ``wanted`` for all ``gpus``; else ``None``.

    ``auto``: any kind.
    """
    there, needed = kinds_of(driver), needed_by(gpus)
    if wanted != "auto" and wanted not in there:
        sentence = f"driver {driver} has no {wanted} kernel module: {_lacking(driver)}"
        return Misfit("driver-module", sentence, _SOURCE, "module: auto")
    if len(needed) > 1:
        both = " and ".join(f"{card} needs the {kind} module" for kind, card in needed.items())
        return Misfit(
            "gpu-module",
            f"no kernel module supports all GPUs of the host: {both}",
            _SOURCE,
            "one kind of GPU in a host",
        )
    for kind, card in needed.items():
        if kind not in there:
            sentence = f"{card} GPUs need the {kind} kernel module, and driver {driver} has none: {_lacking(driver)}"
            return Misfit("gpu-module", sentence, _SOURCE)
        if wanted not in ("auto", kind):
            sentence = f"{card} GPUs need the {kind} kernel module, and the stack has the {wanted} one"
            return Misfit("gpu-module", sentence, _SOURCE, "module: auto")
    return None


def _lacking(driver: str) -> str:
    return (
        f"the open one exists since R{FIRST_OPEN}"
        if branch_of(driver) < FIRST_OPEN
        else (f"the last branch with it was before R{ONLY_OPEN}")
    )


def installer_flags(driver: str, kind: Kind) -> tuple[str, ...]:
    """Return the ``.run``'s options for the module of ``kind``; empty if the driver has only one kind."""
    if len(kinds_of(driver)) == 1:
        return ()
    if branch_of(driver) >= TYPE_OPTION:
        return (f"--kernel-module-type={kind}",)
    return (f"--kernel-module-build-directory={'kernel-open' if kind == 'open' else 'kernel'}",)


def signing_flags(driver: str, secret: str, certificate: str) -> tuple[str, ...]:
    """Return the ``.run``'s options that sign the kernel module; empty without ``secret``, or if DKMS signs the module.

    Without these options, Secure Boot rejects the module in the installer's test load, and the installation fails.
    """
    if not secret or _release(driver) < BUILDS_ITSELF:
        return ()
    return (f"--module-signing-secret-key={secret}", f"--module-signing-public-key={certificate}")


def unloaded_flags(driver: str) -> tuple[str, ...]:
    """Return the ``.run``'s options that skip loading the module, for an installation while nouveau holds a GPU.

    Returns nothing if the driver version is older than these options.
    """
    return ("--skip-module-load", "--no-nouveau-check") if _release(driver) >= SKIPS_LOAD else ()


def _release(driver: str) -> tuple[int, ...]:
    return tuple(map(int, driver.split(".")))


def kind_of_license(license_: str) -> Kind | None:
    """Return the kind of a module with the licence ``license_``, as modinfo prints it; ``None`` for any other text."""
    return _LICENSES.get(license_)
