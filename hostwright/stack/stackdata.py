"""A stack as plain data, in the form of its files: this is stored, and its digest is computed from it.

Digests are part of hosts' release records and name the stacks that this machine keeps. They identify a stack, whatever
its files' addresses, its description, or the way our models are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from hostwright.common.canonical import hash_of

SCHEMA = 2  #: of the data behind a digest; 1 was a dump of the model in the order of its fields


def plain(stack: BaseModel) -> dict[str, Any]:
    """The contents of a stack's files, merged and validated, as JSON values under the files' own keys.

    Default values are left out, so a later Hostwright that knows more keys gets the same result.
    """
    data = stack.model_dump(mode="json", exclude_defaults=True)
    artifacts = {
        name: {key: artifact[key] for key in artifact if key != "name"} for name, artifact in data["artifacts"].items()
    }
    return {**data, "artifacts": artifacts}


def digest_of(data: Mapping[str, Any]) -> str:
    """The digest of a stack's plain data. It does not depend on the order of keys, on files' addresses or ways, or on
    the default roles: a host's record names its roles."""
    kept = {key: value for key, value in data.items() if key not in {"description", "roles"}}
    kept["artifacts"] = {
        name: {key: artifact[key] for key in artifact if key not in {"urls", "private"}}
        for name, artifact in data["artifacts"].items()
    }
    return hash_of({"schema": SCHEMA, "stack": kept})
