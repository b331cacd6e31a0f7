"""The layers of the suite and their reference runs without faults."""

from __future__ import annotations

from dataclasses import dataclass, field

BARE = "bare"


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: the snapshot before it, and the roles up to it for ``--roles``."""

    name: str
    before: str
    roles: tuple[str, ...]


_ORDER = ("base", "driver", "cuda", "cudnn", "environment")

#: Each layer follows the one before; TensorFlow and containers both follow ``environment``.
LAYERS: dict[str, Layer] = {
    **{
        name: Layer(name, _ORDER[place - 1] if place else BARE, _ORDER[: place + 1])
        for place, name in enumerate(_ORDER)
    },
    **{name: Layer(name, "environment", (*_ORDER, name)) for name in ("tensorflow", "container")},
}

#: Snapshots in creation order; each except for the first is the state after the layer of its name.
SNAPSHOTS = (BARE, *_ORDER)


@dataclass(frozen=True, slots=True)
class Reference:
    """A layer's run without a fault: its duration, its steps, and the files before and after it."""

    layer: str
    first_s: float  #: seconds from the start of the process to the first line about the host
    seconds: float  #: seconds from that line to the end of the process
    steps: tuple[tuple[str, str, str, float], ...]  #: (role, description, name from ``hostjobs.named``, seconds)
    #: path → SHA-256 of the files that roles write, see ``checks``
    before: dict[str, str] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)

    def step_seconds(self, part: str) -> float:
        """Return the duration of the step whose name contains ``part``."""
        return next((seconds for _, _, name, seconds in self.steps if part in name), 0.0)
