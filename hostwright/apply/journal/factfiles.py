"""The facts of a host at one time, in a file from which plans can be made again.

It is one JSON document, compressed in three parts that ``gunzip`` reads as one: whose facts these are and of when, the
questions, and the answers in the order of the questions. The second part is the same bytes for all hosts that are asked
the same: it is made once, and read once. So is the third for hosts that answer alike.
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
_PROBES, _ANSWERS = '"probes": ', ', "answers": '  #: the ends of the first part and of the second
_GZIP = 31  #: zlib's word for gzip's format, with the largest window
_HEAD_BYTES = 64 * 1024  #: our choice: of the first part, in which a name stands
MOST_PARSED = 64  #: our choice, of answers that are kept for hosts that answer alike; each takes some 300 kB
_MOST_ASKED = 16  #: our choice: the hosts of a fleet are asked the same; those of other roles are not
_LEVEL = 3  #: of gzip: half the time of its default for a tenth more bytes


@dataclass(frozen=True, slots=True)
class _Question:
    """What a probe is in a file: without its part of a pass, which holds functions."""

    script: str
    root: bool
    cap_bytes: int


@dataclass(frozen=True, slots=True)
class _Answer:
    """What an answer is in a file: unlike ``Answer``, it says whether it was cut."""

    status: int
    text: str
    truncated: bool
    late_s: int = 0


class Parsed:
    """The facts of files that were read, by the bytes in which they stand: hosts that answer alike share them."""

    def __init__(self) -> None:
        self._facts: dict[bytes, Facts] = {}
        self._probes: dict[bytes, tuple[Probe, ...]] = {}

    def get(self, data: bytes) -> Facts:
        """The facts in the second and third part. Raises ``ValueError``, ``zlib.error`` or ``EOFError`` where there are
        none."""
        facts = self._facts.get(data)
        if facts is None:
            probes, rest = self._asked(data)
            answers = _answers(json.loads(gzip.decompress(rest).removesuffix(b"}")))
            facts = Facts(dict(zip(probes, answers, strict=True)))
            _make_room(self._facts, MOST_PARSED)
            self._facts[data] = facts
        return facts

    def _asked(self, data: bytes) -> tuple[tuple[Probe, ...], bytes]:
        """The questions at the beginning, and what follows."""
        for begin, probes in tuple(self._probes.items()):  # as other threads may add to them
            if data.startswith(begin):
                return probes, data[len(begin) :]
        part = zlib.decompressobj(_GZIP)
        text = part.decompress(data).removesuffix(_ANSWERS.encode())
        if not part.eof:
            raise EOFError("the questions are cut off")
        probes = _probes(json.loads(text))
        _make_room(self._probes, _MOST_ASKED)
        self._probes[data[: -len(part.unused_data) or None]] = probes
        return probes, part.unused_data


def _make_room(kept: dict[bytes, Any], most: int) -> None:
    while len(kept) >= most:
        kept.pop(next(iter(kept)), None)


def write_facts(path: Path, host: str, at: str, facts: Facts, redactor: Redactor) -> int:
    """Write facts without secrets; return the file's size. It appears whole or not at all. Raises ``OSError``."""
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
    """The second part."""
    rows = [{"script": script, "root": root, "cap_bytes": cap_bytes} for script, root, cap_bytes in asked]
    return _packed(json.dumps(rows) + _ANSWERS)


def _packed(text: str) -> bytes:
    return gzip.compress(text.encode("ascii"), _LEVEL, mtime=0)


def load_facts(path: Path, parsed: Parsed | None = None) -> tuple[Facts, datetime]:
    """Recorded facts, and when they were read (UTC). Secrets in probes and answers are masked. With ``parsed``, equal
    facts are the same object.

    Raises ``InputError``.
    """
    try:
        text, facts = _read(path.read_bytes(), parsed or Parsed())
        at = datetime.fromisoformat(text)
    except OSError as error:  # also what gzip raises for another kind of file
        raise InputError(f"cannot be read: {error.strerror or error}", str(path)) from error
    except (ValueError, TypeError, KeyError, EOFError, zlib.error) as error:
        raise InputError("does not contain the facts of a host, or is damaged", str(path)) from error
    return facts, at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


def _read(data: bytes, parsed: Parsed) -> tuple[str, Facts]:
    """When facts were read, as it stands there, and they."""
    first = zlib.decompressobj(_GZIP)
    head = first.decompress(data, _HEAD_BYTES)
    if first.eof and head.endswith(_PROBES.encode()):
        return _time(json.loads(head + b"[]}")), parsed.get(first.unused_data)
    # Not by pydantic's own parser: a host's name may contain a lone surrogate.
    document = json.loads(gzip.decompress(data))
    rows = document["facts"]  # schema 1: each question with its answer
    return _time(document), Facts(dict(zip(_probes(rows), _answers(rows), strict=True)))


def _time(document: Mapping[str, Any]) -> str:
    """When facts were read."""
    at = document["at"]
    if not isinstance(at, str):
        raise ValueError("no time")
    return at


def _probes(rows: object) -> tuple[Probe, ...]:
    """The questions of such rows, whatever else is in them."""
    return tuple(
        Probe(one.script, one.root, one.cap_bytes) for one in adapter(tuple[_Question, ...]).validate_python(rows)
    )


def _answers(rows: object) -> tuple[Answer, ...]:
    """The answers, likewise."""
    read = adapter(tuple[_Answer, ...]).validate_python(rows)
    return tuple(Answer(one.status, one.text, one.truncated, one.late_s) for one in read)
