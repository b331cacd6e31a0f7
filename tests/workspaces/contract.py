"""What the sources of TensorFlow Serving 2.9.0 say of its REST answers (`tests/fixtures/serving/contract.json`)."""

from __future__ import annotations

import json
from typing import Any


def differs(case: dict[str, Any], status: int, text: str) -> str:
    """What of an answer is not as the contract has it; empty where all is."""
    if status != case["status"]:
        return f"status {status}: {text[:200]}"
    if "text" in case and "".join(text.split()) != case["text"]:
        return text
    if "json" in case and json.loads(text) != case["json"]:
        return text
    if "has" in case and case["has"] not in (text if status == 200 else json.loads(text).get("error", "")):
        return text[:400]
    return ""
