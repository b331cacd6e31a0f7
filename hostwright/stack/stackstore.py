"""Stores, on this machine, the stacks with which hosts were verified, because rollbacks need these stacks after the
stacks' files have changed.

The record on a host contains only the digest of the host's stack. Therefore a compromised host can choose only among
verified stacks, and cannot set an address or a checksum.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hostwright.common.command import Command
from hostwright.common.errors import InputError
from hostwright.common.input.adapter import adapter
from hostwright.common.places import ANOTHER_STATE, make_folder, refused, state_root, write_whole
from hostwright.common.untrusted import json_object
from hostwright.stack.stack import Stack
from hostwright.stack.stackdata import digest_of, plain
from hostwright.stack.stackfile import Kinds, read_stack

FOLDER = "stacks"
#: schema number in the file of a stored stack; in schema 1, the file name is a digest of the stack's model
SCHEMA: Literal[2] = 2
_DIGEST = re.compile(r"[0-9a-f]{64}")


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Annotated[Literal[2], Field(alias="schema")] = SCHEMA
    stack: dict[str, Any]


def keep(stack: Stack, root: Path | None = None) -> str:
    """Store the verified ``stack``. Return an error text if that fails, else an empty text.

    Never raises an error, because a full disk on this machine must not make a healthy host fail. The default ``root``
    is ``places.state_root()``.
    """
    digest = stack.digest()
    path = _path(digest, root)
    if _has(digest, stack, root):
        return ""
    try:
        make_folder(path.parent)
        write_whole(path, adapter(_Kept).dump_json(_Kept(stack=plain(stack)), by_alias=True))
    except OSError as error:
        return (
            f"the stack {stack.name} cannot be stored in {path.parent}, so {Command('rollback')} cannot use it on "
            f"this machine until the host is provisioned again: {refused(error, ANOTHER_STATE)}"
        )
    return ""


def find(digest: str, kinds: Kinds, root: Path | None = None) -> Stack | None:
    """Return the stored stack with this digest; ``None`` if its file is missing or damaged.

    ``kinds`` are the models of the sections of all known roles. Raises ``InputError`` if a Hostwright of another
    version, or with other roles, stored the stack.
    """
    if not _DIGEST.fullmatch(digest):
        return None
    path = _path(digest, root)
    data = _data(path)
    if data is None:
        return None
    if _newer(data):
        raise InputError("a newer Hostwright stored this stack; upgrade Hostwright on this machine", str(path))
    # a file of schema 1 has a digest that this version cannot compute, so only the file's name is checked
    if "schema" not in data:
        return _read(data, kinds, path, "was stored by an earlier Hostwright in an unsupported form")
    stack = _said(data, digest)
    return None if stack is None else _read(stack, kinds, path, "was stored with sections of unknown roles")


def _data(path: Path) -> dict[str, Any] | None:
    try:
        return json_object(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def _newer(data: dict[str, Any]) -> bool:
    schema = data.get("schema")
    return isinstance(schema, int) and schema > SCHEMA


def _said(data: dict[str, Any], digest: str) -> dict[str, Any] | None:
    try:
        stack = adapter(_Kept).validate_python(data).stack
        return stack if digest_of(stack) == digest else None
    except (ValidationError, KeyError, TypeError, AttributeError):
        return None


def _read(stack: dict[str, Any], kinds: Kinds, path: Path, fault: str) -> Stack:
    try:
        return read_stack(stack, kinds)
    except ValidationError as error:
        sentence = f"the stored stack cannot be used: it {fault}; set `stack` in the inventory and provision"
        raise InputError(sentence, str(path)) from error


def _has(digest: str, stack: Stack, root: Path | None) -> bool:
    data = _data(_path(digest, root)) or {}
    kinds = {name: type(section) for name, section in stack.sections.items()}
    return _newer(data) or ("schema" in data and find(digest, kinds, root) == stack)


def _path(digest: str, root: Path | None) -> Path:
    return (root or state_root()) / FOLDER / f"{digest}.json"
