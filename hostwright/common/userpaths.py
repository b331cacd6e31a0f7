"""Paths as people write them."""

from __future__ import annotations

import os
from pathlib import Path


def expanded(text: str | Path) -> Path:
    """A path with ``~`` and ``~user`` expanded. With an unknown user it stays as it is, where pathlib would raise
    ``RuntimeError``: the code that opens it then reports a missing file.
    """
    return Path(os.path.expanduser(text))  # noqa: PTH111 - see above
