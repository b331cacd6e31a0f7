"""A cache of parsed files that many connections share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class FileCache(Generic[T]):
    """Caches the results of ``parse(path)`` until the file changes. Thread-safe."""

    def __init__(self, parse: Callable[[Path], T]):
        self._parse = parse
        self._lock = threading.Lock()
        self._kept: dict[Path, tuple[tuple[int, ...], T]] = {}

    def get(self, path: Path) -> T:
        """Return the parsed content of the file ``path``. Raises the exceptions of ``stat`` and of ``parse``."""
        with self._lock:
            stat = path.stat()
            identity = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
            kept = self._kept.get(path)
            if kept is None or kept[0] != identity:
                kept = self._kept[path] = (identity, self._parse(path))
            return kept[1]
