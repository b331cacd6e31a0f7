"""The facts of a host at one time, in a file from which plans can be made again.

It is one JSON document, compressed in two parts that ``gunzip`` reads as one: whose facts these are and of when, and
the facts themselves. The second part of two hosts is the same bytes where they answer alike, and is read once for both.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from hostwright.apply.journal.redaction import Redactor
from hostwright.common.errors import InputError
from hostwright.common.places import write_whole
from hostwright.plan.model import Answer, Facts, Probe

SCHEMA = 1
_FACTS = (
    '"facts": '  #: the end of the first part; it is one of an earlier Hostwright where that holds the whole document
)
_LIST = '{"facts": '  #: what makes a document of the second part
_GZIP = 31  #: zlib's word for gzip's format, with the largest window
_HEAD_BYTES = 64 * 1024  #: our choice: of the first part, in which a name stands
MOST_PARSED = 64  #: our choice, of answers that are kept for hosts that answer alike; each takes some 300 kB
_LEVEL = 3  #: of gzip: half the time of its default for a tenth more bytes


@dataclass(frozen=True, slots=True)
class _Row:
    """One question with its answer."""

    script: str
    root: bool
    cap_bytes: int
    status: int
    text: str
    truncated: bool
    late_s: int = 0


@cache
def _rows() -> TypeAdapter[tuple[_Row, ...]]:
    return TypeAdapter(tuple[_Row, ...])


class Parsed:
    """The facts of files that were read, by the bytes in which they stand: hosts that answer alike share them."""

    def __init__(self) -> None:
        self._facts: dict[bytes, Facts] = {}

    def get(self, data: bytes) -> Facts:
        """The facts in these bytes. Raises ``ValueError``, ``zlib.error`` or ``EOFError`` where there are none."""
        facts = self._facts.get(data)
        if facts is None:
            facts = _parsed(json.loads(_LIST + gzip.decompress(data).decode())["facts"])
            while len(self._facts) >= MOST_PARSED:
                self._facts.pop(next(iter(self._facts)), None)
            self._facts[data] = facts
        return facts


def write_facts(path: Path, host: str, at: str, facts: Facts, redactor: Redactor) -> int:
    """Write facts without secrets; return the file's size. It appears whole or not at all. Raises ``OSError``."""
    rows = [
        {
            "script": redactor.text(probe.script),
            "root": probe.root,
            "cap_bytes": probe.cap_bytes,
            "status": answer.status,
            "text": redactor.text(answer.text),
            "truncated": answer.truncated,
            **({"late_s": answer.late_s} if answer.late_s else {}),
        }
        for probe, answer in {**facts, **facts.late}.items()
    ]
    head = json.dumps({"schema": SCHEMA, "host": host, "at": at}).removesuffix("}") + f", {_FACTS}"
    parts = (head, json.dumps(rows) + "}")
    data = b"".join(gzip.compress(part.encode("ascii"), _LEVEL, mtime=0) for part in parts)
    write_whole(path, data)
    return len(data)


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
    if first.eof and head.endswith(_FACTS.encode()):
        return _time(json.loads(head + b"[]}")), parsed.get(first.unused_data)
    # Not by pydantic's own parser: a host's name may contain a lone surrogate.
    document = json.loads(gzip.decompress(data))
    return _time(document), _parsed(document["facts"])


def _time(document: Mapping[str, Any]) -> str:
    """When facts were read."""
    at = document["at"]
    if not isinstance(at, str):
        raise ValueError("no time")
    return at


def _parsed(rows: object) -> Facts:
    return Facts(
        {
            Probe(row.script, row.root, row.cap_bytes): Answer(row.status, row.text, row.truncated, row.late_s)
            for row in _rows().validate_python(rows)
        }
    )
