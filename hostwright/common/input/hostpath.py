"""Paths on hosts that an operator gives in a variable."""

from __future__ import annotations

import posixpath
import re
from typing import Annotated

from pydantic import AfterValidator

_PATH = re.compile(r"/[A-Za-z0-9._+@=/-]*")


def clean_path(path: str) -> str:
    """An absolute path without ``.`` and ``..``. Raises ``ValueError`` for any other text.

    >>> clean_path("/srv/images")
    '/srv/images'
    """
    if not _PATH.fullmatch(path) or posixpath.normpath(path) != path or path.startswith("//"):
        raise ValueError(
            f"{path!r} is no plain absolute path (no ., no .., no slash at its end, "
            "only letters, digits and . _ + @ = -)"
        )
    return path


HostPath = Annotated[str, AfterValidator(clean_path)]  #: the type of a role's variable that is such a path
