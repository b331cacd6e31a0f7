"""Archives that most tar and JSON parsers read as one image, and Docker's as two."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Mapping
from typing import Any

from tests.unit.roles.container.images.archives import NAME, config, layer, saved

HIDDEN = "tensorflow/tensorflow:2.9.0-gpu-jupyter"  #: name that the archives hide
_END = bytes(1024)
_LAYER = layer("hidden")
_SECOND = saved((_LAYER,), config(_LAYER), [HIDDEN])
_BOTH = json.dumps([*json.loads(saved()["manifest.json"]), *json.loads(_SECOND["manifest.json"])]).encode()
_BEHIND = {**_SECOND, "manifest.json": _BOTH}


def archives() -> dict[str, bytes]:
    """Return each archive by the disagreement of its parsers."""
    shown, hidden = _members(saved()), _members(_BEHIND)
    inner = _member("x", hidden, altered=_of_type_nul)
    spelled = json.loads(saved()["manifest.json"])
    spelled[0]["repotags"] = [NAME, HIDDEN]
    without = {name: data for name, data in _SECOND.items() if name != "manifest.json"}
    return {
        "a directory by its pax path": shown + _pax("path", "x/") + inner + _END,
        "a directory by its GNU name": shown + _member("././@LongLink", b"x/\0", b"L") + inner + _END,
        "a directory by its own name": shown + _member("x/", hidden, altered=_of_type_nul) + _END,
        "a file by its pax path": shown + _pax("path", "x") + _member("x/", hidden, altered=_of_type_nul) + _END,
        "a directory with content": shown + _member("x", hidden, tarfile.DIRTYPE) + _END,
        "two pax headers": shown + _pax("path", "z") + _pax("comment", "a") + _member("manifest.json", _BOTH)
        + _members(without) + _END,
        "two sizes": shown + _pax("size", "0") + _pax("size", "9") + _member("x", b"") + _END,
        "a GNU header with a prefix": shown + _members(_BEHIND, altered=_with_gnu_prefix) + _END,
        "a key in another case": _members({**saved(), "manifest.json": json.dumps(spelled).encode()}) + _END,
    }  # fmt: skip


def _members(files: Mapping[str, Any], altered: Callable[[bytearray], None] | None = None) -> bytes:
    return b"".join(_member(name, data, altered=altered) for name, data in files.items() if data is not None)


def _member(
    name: str, data: bytes, kind: bytes = tarfile.REGTYPE, *, altered: Callable[[bytearray], None] | None = None
) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = len(data), kind
    block = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    if altered:
        altered(block)
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + data + bytes(-len(data) % 512)


def _of_type_nul(block: bytearray) -> None:
    block[156] = 0


def _with_gnu_prefix(block: bytearray) -> None:
    block[257:265], block[345] = b"ustar  \0", ord("y")


def _pax(key: str, value: str) -> bytes:
    record = f" {key}={value}\n"
    return _member("pax", f"{len(record) + (1 if len(record) < 9 else 2)}{record}".encode(), b"x")
