"""The layers that are disturbed, and what is known of each from runs without a fault."""

from __future__ import annotations

from dataclasses import dataclass, field

BARE = "bare"


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: the snapshot that stands before it, and the roles up to it, as ``--roles`` wants them."""

    name: str
    before: str
    roles: tuple[str, ...]


_ORDER = ("base", "driver", "cuda", "cudnn", "environment")

#: Each stands on the one before; TensorFlow and containers both on ``environment``, since neither needs the other.
LAYERS: dict[str, Layer] = {
    **{
        name: Layer(name, _ORDER[place - 1] if place else BARE, _ORDER[: place + 1])
        for place, name in enumerate(_ORDER)
    },
    **{name: Layer(name, "environment", (*_ORDER, name)) for name in ("tensorflow", "container")},
}

#: The snapshots, in the order in which they are made; each but the first is the state after the layer of its name.
SNAPSHOTS = (BARE, *_ORDER)


@dataclass(frozen=True, slots=True)
class Reference:
    """One layer's run without a fault: how long it takes, which steps it runs, and what the files are afterwards."""

    layer: str
    first_s: float  #: from the start of the process to the first line about the host
    seconds: float  #: from there to the end of the process
    steps: tuple[tuple[str, str, str, float], ...]  #: role, what it is for, its name (``hostjobs.named``), seconds
    before: dict[str, str] = field(default_factory=dict)  #: path → sha256 of the files that roles write, see ``checks``
    after: dict[str, str] = field(default_factory=dict)

    def step_seconds(self, part: str) -> float:
        """How long the step whose name contains ``part`` takes."""
        return next((seconds for _, _, name, seconds in self.steps if part in name), 0.0)
