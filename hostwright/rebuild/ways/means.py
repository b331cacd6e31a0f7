"""By what means a host can be brought back, as the inventory says: its BMC, an installation, its console."""

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
    """The variables of one host that bringing it back reads; each is empty where the inventory does not give it."""

    bmc: Bmc | None  #: its management controller (``hostwright_bmc``)
    install: Install | None  #: how it gets a new operating system by us (``hostwright_install``)
    reinstall: Reinstall | None  #: the site's own command that gives it one (``hostwright_reinstall``)
    console_command: str  #: prints the host's public keys as its console has them (``hostwright_host_keys``)


def read_means(host: Host) -> Means:
    """The means of a host. Raises ``InputErrors`` with every mistake, each with its place."""
    if not _gives(host, "hostwright_"):  # most hosts of a large inventory
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
        # read by others: a mistake in them is told before any host is reached
        from hostwright.plan.facts.expected import read_expected_gpus, read_expected_models

        with mistakes:
            read_expected_gpus(host)
        with mistakes:
            read_expected_models(host)
    mistakes.refuse()
    return Means(bmc, install, reinstall, console_command)


def _gives(host: Host, beginning: str) -> bool:
    """Whether the inventory gives the host such variables: every verb comes here, and what reads them is imported only
    then."""
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
