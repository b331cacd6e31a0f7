"""How systemd shows its units."""

from __future__ import annotations

from hostwright.common.quoting import sh
from hostwright.plan.model import Probe


def parse_show(text: str) -> dict[str, str]:
    """``systemctl show``'s ``Key=value`` lines as a mapping."""
    return dict(line.partition("=")[::2] for line in text.splitlines() if "=" in line)


def show_probe(unit: str) -> Probe:
    """Whether a unit is there, runs, and starts at boot."""
    return Probe(sh("systemctl show -p LoadState,ActiveState,UnitFileState -- %s", unit))
