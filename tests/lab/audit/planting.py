"""What a plant is: one thing that happens to hosts, how an audit must see it, and what takes it away again.

``rules`` are the failures that must be recognised, and no others; ``states`` are the beginnings of what must be named
as not as desired, and no others: mostly of ``layer``, but what is broken may bring down others. ``cure`` does by hand
what the rule's cure says, where ``invoke provision`` does not mend it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

#: Whether Docker on lab hosts lets systemd make its cgroups, as it does by default with cgroup v2: hosts have the
#: machine's own arrangement. Where Docker makes them itself, a missing link in /dev/char takes no GPU from anybody.
SYSTEMD_MAKES_CGROUPS = Path("/sys/fs/cgroup/cgroup.controllers").exists()
NO_LINKS = "dev-char-links-missing" if SYSTEMD_MAKES_CGROUPS else ""

CUDA = "/usr/local/cuda-11.2"
LIB = f"{CUDA}/targets/x86_64-linux/lib"
VENV = "/opt/tensorflow-2.9"
MULTIARCH = "/usr/lib/x86_64-linux-gnu"
SITE = f"{VENV}/lib/python3.9/site-packages"


@dataclass(frozen=True)
class Plant:
    """One thing gone wrong on a host that was as desired."""

    name: str
    layer: str
    script: str
    rules: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    cure: str = ""  #: by hand; empty: ``invoke provision`` mends it
    quick: bool = False  #: one of the round that ``make test`` plays: cured in seconds, and no other layer minds it


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
    """A plant; ``rules`` are names with spaces between."""
    return Plant(name, layer, script, frozenset(rules.split()), frozenset(states), cure, quick)
