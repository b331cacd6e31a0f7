"""The values that a stack's file is made of: names, versions, paths and addresses, each with the form it must have."""

from __future__ import annotations

from typing import Annotated, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Layer = Literal["driver", "cuda", "cudnn"]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.+-]*$")]
DebianVersion = Annotated[str, Field(pattern=r"^[0-9][A-Za-z0-9.+~:-]*$")]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
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
        raise ValueError(f"{text!r} does not name kernels; expected conditions like <6.3 or >=5.4,<6.3") from None
    return text


ExactVersion = Annotated[str, AfterValidator(_is_version)]
Kernels = Annotated[str, AfterValidator(_is_kernels)]


class Part(BaseModel):
    """A part of a stack: a frozen value without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
