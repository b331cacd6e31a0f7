"""Paths as people write them."""

from __future__ import annotations

import os
from pathlib import Path


def expanded(text: str | Path) -> Path:
    """A path with ``~`` and ``~user`` filled in. One of a user that is not known here stays as it is (where pathlib
    raises ``RuntimeError``): it is then a file that is not there, which its reader says.
    """
    return Path(os.path.expanduser(text))  # noqa: PTH111 - see above
