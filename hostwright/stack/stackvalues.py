"""Types of values in a stack file: names, versions, paths and addresses.

``Annotated[str, ArtifactName]`` is the name of one of the stack's artifacts. ``Annotated[str, TextFile]`` is the
content of a text file that the stack file names. These marks may be anywhere in a field's annotation:
``Mapping[PythonVersion, Annotated[str, ArtifactName]]``.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.+-]*$")]
DebianVersion = Annotated[str, Field(pattern=r"^[0-9][A-Za-z0-9.+~:-]*$")]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+~-]*$")]
RelativePath = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9][A-Za-z0-9._+-]*)*$")]
AbsolutePath = Annotated[str, Field(pattern=r"^/[A-Za-z0-9._+/-]*$")]
Url = Annotated[str, Field(pattern=r"^(https?|file)://[^\s]+$")]
PythonVersion = Annotated[str, Field(pattern=r"^3\.[0-9]+$")]
Fingerprint = Annotated[str, Field(pattern=r"^[0-9A-F]{40}$")]


def _is_version(text: str) -> str:
    try:
        Version(text)
    except InvalidVersion:
        raise ValueError(f"{text!r} is not a version; expected one like 11.2.2") from None
    return text


def _is_kernels(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        raise ValueError(f"{text!r} is not a kernel condition; expected one like <6.3 or >=5.4,<6.3") from None
    return text


ExactVersion = Annotated[str, AfterValidator(_is_version)]
Kernels = Annotated[str, AfterValidator(_is_kernels)]


def _without_nulls(value: Any) -> Any:
    return {name: entry for name, entry in value.items() if entry is not None} if isinstance(value, Mapping) else value


#: validator that drops entries with a null value; a null removes the entry of an extended stack
WithoutNulls = BeforeValidator(_without_nulls)


class ArtifactName:
    """Marks a text as the name of one of the stack's artifacts."""


class TextFile:
    """Marks a text from a separate text file; the stack file contains the name of that file."""


class StackPart(BaseModel):
    """Base class for parts of a stack: a frozen pydantic model that forbids unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def marked(kind: Any, value: Any, mark: type, way: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Yield path and value of each value inside ``value`` with the mark ``mark`` in its annotation in ``kind``.

    Data of another form than ``kind`` is ignored.
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if value is None:
        return
    if origin is Annotated and mark in inner[1:]:
        yield way, value
    elif origin is Annotated:
        yield from marked(inner[0], value, mark, way)
    elif origin in (typing.Union, types.UnionType):
        for hint in inner:
            yield from marked(hint, value, mark, way)
    else:
        for key, hint, item in _inside(kind, value):
            yield from marked(hint, item, mark, (*way, key))


def _inside(kind: Any, value: Any) -> Iterator[tuple[str | int, Any, Any]]:
    inner = typing.get_args(kind)
    if isinstance(kind, type) and issubclass(kind, StackPart) and isinstance(value, (Mapping, StackPart)):
        held = value if isinstance(value, Mapping) else dict(value)
        yield from ((name, hint, held[name]) for name, hint in _hints(kind).items() if name in held)
    elif len(inner) == 2 and isinstance(value, Mapping):
        yield from ((key, inner[1], item) for key, item in value.items())
    elif inner and isinstance(value, (list, tuple)):
        yield from ((index, inner[0], item) for index, item in enumerate(value))


@cache
def _hints(kind: type[StackPart]) -> Mapping[str, Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {name: hints[name] for name in kind.model_fields}
