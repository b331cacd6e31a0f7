"""The values of a host that are compared with the stack, each as a few words of shell that print it.

The same words ask them in an audit from here and in the timer with which a host audits itself.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """One value: ``script`` is POSIX sh that prints it, its first line counts; nothing printed is nothing there.

    ``want`` is the stack's value, ``None`` where no stack pins it; then hosts with equal ``among`` are compared.
    """

    layer: str
    name: str
    script: str
    want: str | None = None
    among: str = ""
    root: bool = False
