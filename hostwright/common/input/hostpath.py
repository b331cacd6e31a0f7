"""Type for the variables of roles that contain a path on a host."""

from __future__ import annotations

import posixpath
import re
from typing import Annotated

from pydantic import AfterValidator

_PATH = re.compile(r"/[A-Za-z0-9._+@=/-]*")


def clean_path(path: str) -> str:
    """Return ``path`` unchanged. Raises ``ValueError`` if ``path`` is not absolute, or contains ``.`` or ``..``.

    >>> clean_path("/srv/images")
    '/srv/images'
    """
    if not _PATH.fullmatch(path) or posixpath.normpath(path) != path or path.startswith("//"):
        raise ValueError(
            f"{path!r} is not a plain absolute path; use only letters, digits and . _ + @ = -, "
            "no part . or .., and no slash at the end"
        )
    return path


HostPath = Annotated[str, AfterValidator(clean_path)]
