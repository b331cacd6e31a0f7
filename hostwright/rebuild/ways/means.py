"""Settings in the inventory for the rebuild of a host: its BMC, its installation, its console."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostwright.common.errors import Mistakes
from hostwright.inventory import Host

if TYPE_CHECKING:
    from hostwright.rebuild.bmc.settings import Bmc
    from hostwright.rebuild.install.seeds.settings import Install, Reinstall


@dataclass(frozen=True, slots=True)
class Means:
    """Settings of one host for its rebuild; ``None`` or empty if the inventory lacks a setting."""

    bmc: Bmc | None
    install: Install | None
    reinstall: Reinstall | None
    console_command: str  #: command that prints the host's public keys, read from the console


def read_means(host: Host) -> Means:
    """Read the settings for the rebuild of ``host``. Raises ``InputErrors`` with all invalid settings."""
    if not _gives(host, "hostwright_"):
        return Means(None, None, None, "")
    mistakes = Mistakes()
    with mistakes:
        bmc = _bmc(host)
    with mistakes:
        install = _install(host)
    with mistakes:
        reinstall = _reinstall(host)
    with mistakes:
        console_command = _console_command(host)
    if any(_gives(host, name) for name in ("hostwright_gpus", "hostwright_gpu_model")):
        # These values are read only to report mistakes in them before any host is contacted.
        from hostwright.plan.facts.expected import read_expected_gpus, read_expected_models

        with mistakes:
            read_expected_gpus(host)
        with mistakes:
            read_expected_models(host)
    mistakes.refuse()
    return Means(bmc, install, reinstall, console_command)


def _gives(host: Host, beginning: str) -> bool:
    return any(name.startswith(beginning) for name in host.vars)


def _bmc(host: Host) -> Bmc | None:
    if not _gives(host, "hostwright_bmc"):
        return None
    from hostwright.rebuild.bmc.settings import read_bmc

    return read_bmc(host)


def _install(host: Host) -> Install | None:
    if not _gives(host, "hostwright_install"):
        return None
    from hostwright.rebuild.install.seeds.reading import read_install

    return read_install(host)


def _reinstall(host: Host) -> Reinstall | None:
    if not _gives(host, "hostwright_reinstall"):
        return None
    from hostwright.rebuild.install.seeds.reading import read_reinstall

    return read_reinstall(host)


def _console_command(host: Host) -> str:
    if not _gives(host, "hostwright_host_key"):
        return ""
    from hostwright.rebuild.install.sources import read_console_command

    return read_console_command(host)
