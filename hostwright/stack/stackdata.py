"""A stack as plain data, in the form of its files: what is kept of it, and what its digest is made of.

Digests stand in the release records of hosts and name the stacks that this machine keeps. They say which stack it is,
and neither where its files are fetched from, nor what people are told about it, nor how our models are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from hostwright.common.canonical import hash_of

SCHEMA = 2  #: of what a digest is made of; 1 was a dump of the model in the order of its fields


def plain(stack: BaseModel) -> dict[str, Any]:
    """What the files of a stack say, merged and validated, as JSON values under the files' own keys.

    What has its default is left out, so that a later Hostwright, which knows more keys, finds the same.
    """
    data = stack.model_dump(mode="json", exclude_defaults=True)
    artifacts = {name: {key: one[key] for key in one if key != "name"} for name, one in data["artifacts"].items()}
    return {**data, "artifacts": artifacts}


def digest_of(data: Mapping[str, Any]) -> str:
    """The digest of a stack's plain data. The order of keys is no part of it, nor is any address of a file, nor which
    roles a host has that names none: that says its record."""
    kept = {key: value for key, value in data.items() if key not in {"description", "roles"}}
    kept["artifacts"] = {
        name: {key: one[key] for key in one if key != "urls"} for name, one in data["artifacts"].items()
    }
    return hash_of({"schema": SCHEMA, "stack": kept})
