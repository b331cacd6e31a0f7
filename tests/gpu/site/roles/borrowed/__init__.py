"""A machine that nobody may change: nothing is wanted of it, so it is as desired, and proofs can run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.resources import Resource
from hostwright.roles import RoleContext, role


@dataclass(frozen=True, slots=True)
class Borrowed:
    """Variables of the role ``borrowed``."""

    toolkit: str = ""  #: the directory of a CUDA toolkit with nvcc; empty: there is none
    python: str = ""  #: the path of one that has PyTorch; empty: there is none
    limit_s: int = 60  #: how long a proof may take


@role(uses=["base", "cuda", "driver", "pytorch"])
def borrowed(_v: Borrowed, _ctx: RoleContext) -> Iterator[Resource]:
    """No states."""
    yield from ()
