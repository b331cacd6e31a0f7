"""What commands that are advised (``cli.door.advice``) take over of the call. Nothing that is slow to import."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar

#: the program that was called, its ``--site``, and, by their names, those options of the call that say which hosts it
#: is about and how they are reached
PROGRAM: ContextVar[str] = ContextVar("PROGRAM", default="invoke")
SITE: ContextVar[str] = ContextVar("SITE", default="")
CALL: ContextVar[Mapping[str, str | bool | tuple[str, ...]]] = ContextVar("CALL")
