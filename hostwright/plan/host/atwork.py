"""Who is at work on a host, and would be hit by what is about to be done to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AtWork:
    """Who is at work on a host and would be hit: ``gpus`` use a GPU, ``others`` are named by a state that changes."""

    gpus: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def everyone(self) -> tuple[str, ...]:
        """Each of them once; of one that both name, the longer name."""
        names = dict.fromkeys([*self.gpus, *self.others])
        return tuple(name for name in names if not any(other.startswith(f"{name} ") for other in names))
