"""Parser for the graphs' tags and signatures in a ``saved_model.pb``, without TensorFlow.

The parser skips all other fields, so that a graph of a gigabyte is not read.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# The field numbers come from TensorFlow's saved_model.proto and meta_graph.proto.
_META_GRAPHS, _META_INFO, _SAVER, _SIGNATURES, _TAGS = 2, 1, 3, 5, 4
_KEY = 1  #: protobuf field number of a map entry's key
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_INIT = "__saved_model_"  #: name prefix of TensorFlow's internal signatures of a model


@dataclass(frozen=True, slots=True)
class Graph:
    """Graph of a SavedModel: tags, and names of signatures."""

    tags: tuple[str, ...]
    signatures: tuple[str, ...]
    restores: bool = False  #: whether the model's variables are restored from files, as in all models of TensorFlow 2


def graphs_of(file: Path) -> tuple[Graph, ...]:
    """Return the graphs in ``file``, a ``saved_model.pb``. Raises ``ValueError`` for an invalid file."""
    with file.open("rb") as stream:
        if not file.stat().st_size:
            raise ValueError("the file is empty")
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            view = memoryview(data)
            try:
                return tuple(_graph(part) for part in _parts(view, _META_GRAPHS))
            finally:
                view.release()


def _graph(data: memoryview) -> Graph:
    tags = [_text(tag) for info in _parts(data, _META_INFO) for tag in _parts(info, _TAGS)]
    names = [_text(key) for entry in _parts(data, _SIGNATURES) for key in _parts(entry, _KEY)]
    signatures = tuple(sorted(name for name in names if not name.startswith(_INIT)))
    return Graph(tuple(tags), signatures, any(True for _ in _parts(data, _SAVER)))


def _text(data: memoryview) -> str:
    return bytes(data[:1000]).decode("utf-8", "replace")


def _parts(data: memoryview, wanted: int) -> Iterator[memoryview]:
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, kind = key >> 3, key & 7
        if not number or kind not in (_VARINT, _FIXED64, _BYTES, _FIXED32):
            raise ValueError(f"no valid field at byte {place}")
        if kind == _VARINT:
            _, place = _varint(data, place)
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(kind, -1)
        if size < 0:
            size, place = _varint(data, place)
        if place + size > len(data):
            raise ValueError("the file is incomplete")
        if kind == _BYTES and number == wanted:
            yield data[place : place + size]
        place += size


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            raise ValueError("the file is incomplete")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, place
    raise ValueError(f"no valid varint at byte {place}")
