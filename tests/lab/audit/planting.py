"""Plants: faults of real hosts, with the expected report of an audit, and their fix.

``rules`` are exactly the failures that must be reported. ``states`` are prefixes of exactly the states that must
differ, mostly of ``layer``; a fault may affect other layers. ``cure`` applies the rule's fix by hand if ``invoke
provision`` does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

#: Whether systemd creates Docker's cgroups on lab hosts, the default with cgroup v2; hosts have this machine's
#: hierarchy. If Docker creates them, a missing link in /dev/char has no effect on GPUs.
SYSTEMD_MAKES_CGROUPS = Path("/sys/fs/cgroup/cgroup.controllers").exists()
NO_LINKS = "dev-char-links-missing" if SYSTEMD_MAKES_CGROUPS else ""

CUDA = "/usr/local/cuda-11.2"
LIB = f"{CUDA}/targets/x86_64-linux/lib"
VENV = "/opt/tensorflow-2.9"
MULTIARCH = "/usr/lib/x86_64-linux-gnu"
SITE = f"{VENV}/lib/python3.9/site-packages"


@dataclass(frozen=True)
class Plant:
    """One fault on a host that was as desired."""

    name: str
    layer: str
    script: str
    rules: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    cure: str = ""  #: commands of the fix; empty: ``invoke provision`` fixes it
    quick: bool = False  #: part of the round in ``make test``: fixed in seconds, without effect on other layers


def plant(
    name: str,
    layer: str,
    script: str,
    *,
    rules: str = "",
    states: tuple[str, ...] = (),
    cure: str = "",
    quick: bool = False,
) -> Plant:
    """Return a plant; ``rules`` are names separated by spaces."""
    return Plant(name, layer, script, frozenset(rules.split()), frozenset(states), cure, quick)
