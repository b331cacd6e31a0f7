"""Files with the facts of one host at one time. From these facts, the host can be planned again.

The file is one JSON document, compressed in three parts that ``gunzip`` reads as one: host and time, probes, and
answers in the order of the probes. The second part is equal for hosts with the same probes, and the third for hosts
with the same answers.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from hostwright.apply.journal.redaction import Redactor
from hostwright.common.errors import InputError
from hostwright.common.input.adapter import adapter
from hostwright.common.places import write_whole
from hostwright.plan.model import Answer, Facts, Probe

SCHEMA = 2
#: texts at the ends of a fact file's first part (host and time) and second part (probes)
_PROBES, _ANSWERS = '"probes": ', ', "answers": '
_GZIP = 31  #: zlib's ``wbits`` parameter for gzip data with the largest window
#: maximum number of bytes of a fact file's first part, which contains the host name (our choice)
_HEAD_BYTES = 64 * 1024
MOST_PARSED = 64  #: maximum number of cached third parts (answers) of fact files, about 300 kB each (our choice)
_MOST_ASKED = 16  #: maximum number of cached second parts (probes) of fact files, one per set of roles (our choice)
_LEVEL = 3  #: gzip level that takes half the time of the default level, for 10 % more bytes


@dataclass(frozen=True, slots=True)
class _Question:
    script: str
    root: bool
    cap_bytes: int


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    text: str
    truncated: bool
    late_s: int = 0


class Parsed:
    """Cache of parsed facts by the bytes of their file. Hosts with the same answers share one ``Facts`` object."""

    def __init__(self) -> None:
        self._facts: dict[bytes, Facts] = {}
        self._probes: dict[bytes, tuple[Probe, ...]] = {}

    def get(self, data: bytes) -> Facts:
        """Return the facts in ``data``, the second and third part of a fact file.

        Raises ``ValueError``, ``zlib.error`` or ``EOFError`` for invalid data.
        """
        facts = self._facts.get(data)
        if facts is None:
            probes, rest = self._asked(data)
            answers = _answers(json.loads(gzip.decompress(rest).removesuffix(b"}")))
            facts = Facts(dict(zip(probes, answers, strict=True)))
            _make_room(self._facts, MOST_PARSED)
            self._facts[data] = facts
        return facts

    def _asked(self, data: bytes) -> tuple[tuple[Probe, ...], bytes]:
        for begin, probes in tuple(self._probes.items()):  # The loop needs a copy, because other threads may add items.
            if data.startswith(begin):
                return probes, data[len(begin) :]
        part = zlib.decompressobj(_GZIP)
        text = part.decompress(data).removesuffix(_ANSWERS.encode())
        if not part.eof:
            raise EOFError("the list of probes is truncated")
        probes = _probes(json.loads(text))
        _make_room(self._probes, _MOST_ASKED)
        self._probes[data[: -len(part.unused_data) or None]] = probes
        return probes, part.unused_data


def _make_room(kept: dict[bytes, Any], most: int) -> None:
    while len(kept) >= most:
        kept.pop(next(iter(kept)), None)


def write_facts(path: Path, host: str, at: str, facts: Facts, redactor: Redactor) -> int:
    """Write the facts of ``host`` atomically to ``path`` with secrets masked.

    Return the file's size in bytes. Raises ``OSError`` if the file cannot be written.
    """
    known = {**facts, **facts.late}
    head = json.dumps({"schema": SCHEMA, "host": host, "at": at}).removesuffix("}") + f", {_PROBES}"
    asked = tuple((redactor.text(probe.script), probe.root, probe.cap_bytes) for probe in known)
    answers = [
        {
            "status": answer.status,
            "text": redactor.text(answer.text),
            "truncated": answer.truncated,
            **({"late_s": answer.late_s} if answer.late_s else {}),
        }
        for answer in known.values()
    ]
    data = _packed(head) + _questions(asked) + _packed(json.dumps(answers) + "}")
    write_whole(path, data)
    return len(data)


@lru_cache(maxsize=_MOST_ASKED)
def _questions(asked: tuple[tuple[str, bool, int], ...]) -> bytes:
    rows = [{"script": script, "root": root, "cap_bytes": cap_bytes} for script, root, cap_bytes in asked]
    return _packed(json.dumps(rows) + _ANSWERS)


def _packed(text: str) -> bytes:
    return gzip.compress(text.encode("ascii"), _LEVEL, mtime=0)


def load_facts(path: Path, parsed: Parsed | None = None) -> tuple[Facts, datetime]:
    """Return the facts in the fact file ``path``, with secrets masked, and the time of the probe (UTC).

    ``parsed`` caches facts, so that equal facts are one object. Raises ``InputError`` if the file is unreadable or
    invalid.
    """
    try:
        text, facts = _read(path.read_bytes(), parsed or Parsed())
        at = datetime.fromisoformat(text)
    except OSError as error:  # The subclass ``BadGzipFile`` has no ``strerror``.
        raise InputError(f"cannot be read: {error.strerror or error}", str(path)) from error
    except (ValueError, TypeError, KeyError, EOFError, zlib.error) as error:
        raise InputError("is not a valid file of host facts", str(path)) from error
    return facts, at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


def _read(data: bytes, parsed: Parsed) -> tuple[str, Facts]:
    first = zlib.decompressobj(_GZIP)
    head = first.decompress(data, _HEAD_BYTES)
    if first.eof and head.endswith(_PROBES.encode()):
        return _time(json.loads(head + b"[]}")), parsed.get(first.unused_data)
    # pydantic's own parser would reject a host name with a lone surrogate, which ``json`` accepts.
    document = json.loads(gzip.decompress(data))
    rows = document["facts"]  # In schema 1, each probe is stored together with its answer.
    return _time(document), Facts(dict(zip(_probes(rows), _answers(rows), strict=True)))


def _time(document: Mapping[str, Any]) -> str:
    at = document["at"]
    if not isinstance(at, str):
        raise ValueError("the file has no timestamp")
    return at


def _probes(rows: object) -> tuple[Probe, ...]:
    return tuple(
        Probe(one.script, one.root, one.cap_bytes) for one in adapter(tuple[_Question, ...]).validate_python(rows)
    )


def _answers(rows: object) -> tuple[Answer, ...]:
    read = adapter(tuple[_Answer, ...]).validate_python(rows)
    return tuple(Answer(one.status, one.text, one.truncated, one.late_s) for one in read)
