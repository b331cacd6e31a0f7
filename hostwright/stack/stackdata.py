"""Converts a stack to plain data in the form of stack files, for storage and for the stack's digest.

Digests identify stacks in hosts' release records and on this machine. They do not depend on file addresses, on the
description, or on how the models are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from hostwright.common.canonical import hash_of

SCHEMA = 2


def plain(stack: BaseModel) -> dict[str, Any]:
    """Return ``stack`` as JSON values with the keys of stack files, without default values."""
    data = stack.model_dump(mode="json", exclude_defaults=True)
    artifacts = {
        name: {key: artifact[key] for key in artifact if key != "name"} for name, artifact in data["artifacts"].items()
    }
    return {**data, "artifacts": artifacts}


def digest_of(data: Mapping[str, Any]) -> str:
    """Return the digest of ``data``, a stack as plain data.

    The digest does not depend on the order of keys, on files' addresses or transfer methods, or on the default roles.
    """
    kept = {key: value for key, value in data.items() if key not in {"description", "roles"}}
    kept["artifacts"] = {
        name: {key: artifact[key] for key in artifact if key not in {"urls", "private"}}
        for name, artifact in data["artifacts"].items()
    }
    return hash_of({"schema": SCHEMA, "stack": kept})
