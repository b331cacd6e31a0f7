"""The values of a declared workspace: names, sizes, images and mounts, each with its required form."""

from __future__ import annotations

import posixpath
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

Kind = Literal["jupyter", "ssh", "tensorboard", "batch", "serving"]

#: In the container; a person's files of the workspace are mounted there.
HOME = "/workspace"

#: Directories of the host that no workspace may have, with all that is in them.
_SYSTEM = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/root", "/run", "/sbin", "/sys",
    "/usr", "/var",
)  # fmt: skip
_SIZE = re.compile(r"([1-9][0-9]{0,7})([kmgt])")
_FACTORS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_PATH = re.compile(r"/[A-Za-z0-9._+@=/-]*")
#: An image as Docker names it: ``[registry[:port]/]path[:tag][@sha256:digest]``.
_IMAGE = re.compile(
    r"(?P<name>(?:(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
    r"(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)


def bytes_of(size: str) -> int:
    """The number of bytes of a size such as ``64g``.

    >>> bytes_of("1g")
    1073741824
    """
    number, unit = re.fullmatch(_SIZE, size).groups()  # type: ignore[union-attr]  # checked when it was read
    return int(number) * _FACTORS[unit]


def digest_of(image: str) -> str:
    """The digest that an image's name pins; empty where it is named by its tag."""
    return image.partition("@")[2]


def _size(text: str) -> str:
    if not _SIZE.fullmatch(text.lower()):
        raise ValueError(f"found {text!r}, expected a size such as 512m or 64g")
    return text.lower()


def _image(text: str) -> str:
    parts = _IMAGE.fullmatch(text)
    if parts is None:
        raise ValueError(f"found {text!r}, expected an image such as tensorflow/tensorflow:2.9.0-gpu-jupyter")
    if parts["tag"] == "latest":
        raise ValueError(f"{text}: name an exact tag, for latest is another image every few weeks")
    if not parts["tag"] and not parts["digest"]:
        raise ValueError(f"{text}: name an exact tag, such as {text}:2.9.0-gpu-jupyter, or a digest (@sha256:…)")
    return text


def clean_path(path: str) -> str:
    """An absolute path without ``.`` and ``..``. Raises ``ValueError`` for any other text."""
    if not _PATH.fullmatch(path) or posixpath.normpath(path) != path or path.startswith("//"):
        raise ValueError(f"{path!r} is no plain absolute path (no ., no .., no slash at its end, no spaces)")
    return path


def is_below(path: str, directory: str) -> bool:
    """Whether a path is a directory or something in it."""
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def _mount(text: str) -> str:
    parts = text.split(":")
    if len(parts) not in (2, 3) or (len(parts) == 3 and parts[2] not in ("ro", "rw")):
        raise ValueError(f"found {text!r}, expected HOST_DIRECTORY:DIRECTORY_IN_IT, or the same with :ro at its end")
    source, target = clean_path(parts[0]), clean_path(parts[1])
    for side, path in (("host", source), ("workspace", target)):
        system = next((directory for directory in _SYSTEM if is_below(path, directory)), "/" if path == "/" else None)
        if system:
            raise ValueError(
                f"{text}: {path} belongs to the system of the {side}; no workspace gets what is in {system}"
            )
    if is_below(HOME, target):
        raise ValueError(f"{text}: {HOME} holds the workspace's own files; mount into it, such as {HOME}/data")
    return text


def _keys(text: str) -> str:
    if not re.fullmatch(r"(ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]+ [A-Za-z0-9+/]{16,}={0,3}( [^\n\r]*)?", text.strip()):
        raise ValueError(f"found {text[:40]!r}, expected a public key as in ~/.ssh/id_ed25519.pub")
    return text.strip()


WorkspaceName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,30}$")]
UserName = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,30}$")]
#: People's ids begin there; those below are the system's accounts.
Id = Annotated[int, Field(ge=1000, le=2**31 - 2)]
Size = Annotated[str, AfterValidator(_size)]
Image = Annotated[str, AfterValidator(_image)]
Mount = Annotated[str, AfterValidator(_mount)]
PublicKey = Annotated[str, AfterValidator(_keys)]
#: of a model's version: what ``sha256sum`` prints of all its files, as ``serve.up`` makes it
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Version = Annotated[int, Field(ge=1, le=2**63 - 1)]
Path = Annotated[str, AfterValidator(clean_path)]
Cpus = Annotated[float, Field(gt=0, le=4096)]
