"""Reading what a host says, whatever it says."""

from __future__ import annotations

import json
from typing import Any


def json_object(text: str) -> dict[str, Any] | None:
    """The JSON object in a host's text; ``None`` where it is none, one nested beyond all measure included."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
