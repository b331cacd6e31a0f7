"""What the inventory says of how a host is changed: who is asked to take work off it, how long a reboot may take."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.apply.delivery.sources.settings import FileSettings, read_file_settings
from hostwright.apply.disturb.draining import Hooks, read_hooks
from hostwright.apply.disturb.rebooting import read_reboot_timeout
from hostwright.apply.saved.signing import read_signing
from hostwright.common.errors import Mistakes
from hostwright.inventory import Host


@dataclass(frozen=True, slots=True)
class ApplyVariables:
    """The variables of one host that applying a plan reads."""

    files: FileSettings  #: how the host gets its files, and what it does for others with them
    hooks: Hooks | None  #: what takes work off the host and lets it back, where the inventory names it
    reboot_timeout_s: float  #: how long the host may take to come back (``hostwright_reboot_timeout``)


def read_apply_variables(host: Host) -> ApplyVariables:
    """The variables of a host. Raises ``InputErrors`` with every mistake, each with its place."""
    mistakes = Mistakes()
    with mistakes:
        files = read_file_settings(host)
    with mistakes:
        hooks = read_hooks(host)
    with mistakes:
        reboot_timeout_s = read_reboot_timeout(host)
    with mistakes:
        read_signing(host)
    mistakes.refuse()
    return ApplyVariables(files, hooks, reboot_timeout_s)
