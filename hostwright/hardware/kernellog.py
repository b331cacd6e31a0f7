"""The kernel's log of the last days, as far as it is about GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hostwright.model import Probe

KERNEL_LOG = Probe("true", root=True)


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One line of the kernel's log; ``at`` is ``None`` where the log does not say when."""

    at: datetime | None
    text: str


def kernel_lines(text: str, now: datetime) -> tuple[KernelLine, ...]:
    """The lines in the answer to ``KERNEL_LOG``."""
    raise NotImplementedError
