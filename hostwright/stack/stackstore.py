"""The stacks that hosts were verified with, kept on this machine: a rollback needs them after their files changed.

A host's record names its stack only by digest. A rollback installs what this machine kept under that digest, so a
compromised host can at most choose among verified stacks, and never an address or a checksum.
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
SCHEMA: Literal[2] = 2  #: of a file; 1 was only a stack's model, under the digest of that model
_DIGEST = re.compile(r"[0-9a-f]{64}")


class _Kept(BaseModel):
    """A file of schema 2: a stack in the form of its files."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Annotated[Literal[2], Field(alias="schema")] = SCHEMA
    stack: dict[str, Any]


def keep(stack: Stack, root: Path | None = None) -> str:
    """Keep a verified stack; return an empty text, or a sentence why it could not be kept.

    That is not an error: a full disk on this machine must not turn a healthy host into a failed one. ``root`` is
    ``journal.state_root()``.
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
            f"the stack {stack.name} cannot be kept in {path.parent}, and {Command('rollback')} will not know it on "
            f"this machine until the host is provisioned again: {refused(error, ANOTHER_STATE)}"
        )
    return ""


def find(digest: str, kinds: Kinds, root: Path | None = None) -> Stack | None:
    """The stack with this digest; ``None`` if this machine does not have it, or its file is damaged.

    ``kinds`` are the models of the sections of all known roles.

    Raises ``InputError`` if it was kept by another version of Hostwright, or with other roles, and cannot be read.
    """
    if not _DIGEST.fullmatch(digest):
        return None
    path = _path(digest, root)
    data = _data(path)
    if data is None:
        return None
    if _newer(data):
        raise InputError("a newer Hostwright kept this stack: upgrade Hostwright on this machine", str(path))
    if "schema" not in data:  # too old to compute its digest: the file's name is trusted
        return _read(data, kinds, path, "was kept by an earlier Hostwright in a form that this one cannot read")
    stack = _said(data, digest)
    return None if stack is None else _read(stack, kinds, path, "was kept with sections of roles that are not here")


def _data(path: Path) -> dict[str, Any] | None:
    try:
        return json_object(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def _newer(data: dict[str, Any]) -> bool:
    schema = data.get("schema")
    return isinstance(schema, int) and schema > SCHEMA


def _said(data: dict[str, Any], digest: str) -> dict[str, Any] | None:
    """The stack in a file of schema 2, as plain data; ``None`` if it is not what was written there."""
    try:
        stack = adapter(_Kept).validate_python(data).stack
        return stack if digest_of(stack) == digest else None
    except (ValidationError, KeyError, TypeError, AttributeError):
        return None


def _read(stack: dict[str, Any], kinds: Kinds, path: Path, fault: str) -> Stack:
    """The stack in plain data. Raises ``InputError`` with the ``fault`` if it cannot be read."""
    try:
        return read_stack(stack, kinds)
    except ValidationError as error:
        sentence = f"this stack {fault}: name a stack in the inventory (`stack`) and provision"
        raise InputError(sentence, str(path)) from error


def _has(digest: str, stack: Stack, root: Path | None) -> bool:
    """Whether a stack is kept as it is now. With another file address it has the same digest, and is kept again."""
    data = _data(_path(digest, root)) or {}
    kinds = {name: type(section) for name, section in stack.sections.items()}
    return _newer(data) or ("schema" in data and find(digest, kinds, root) == stack)


def _path(digest: str, root: Path | None) -> Path:
    return (root or state_root()) / FOLDER / f"{digest}.json"
