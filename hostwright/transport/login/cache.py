"""Files that many connections read: parsed once, and again after a change."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class FileCache(Generic[T]):
    """``parse(path)``, kept as long as the file is unchanged. Thread-safe: one thread parses, others wait."""

    def __init__(self, parse: Callable[[Path], T]):
        self._parse = parse
        self._lock = threading.Lock()
        self._kept: dict[Path, tuple[tuple[int, ...], T]] = {}

    def get(self, path: Path) -> T:
        """The parsed file. Raises what ``stat`` or the parser raises."""
        with self._lock:
            stat = path.stat()
            identity = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
            kept = self._kept.get(path)
            if kept is None or kept[0] != identity:
                kept = self._kept[path] = (identity, self._parse(path))
            return kept[1]
