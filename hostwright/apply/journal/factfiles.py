"""The facts of a host at one time, in a file from which plans can be made again."""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from hostwright.apply.journal.redaction import Redactor
from hostwright.common.errors import InputError
from hostwright.common.places import write_whole
from hostwright.plan.model import Answer, Facts, Probe

SCHEMA = 1
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


@dataclass(frozen=True, slots=True)
class _Kept:
    facts: tuple[_Row, ...]
    at: str  #: ISO 8601


@cache
def _kept_adapter() -> TypeAdapter[_Kept]:
    return TypeAdapter(_Kept)


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
    document = json.dumps({"schema": SCHEMA, "host": host, "at": at, "facts": rows}).encode("ascii")
    data = gzip.compress(document, _LEVEL, mtime=0)
    write_whole(path, data)
    return len(data)


def load_facts(path: Path) -> tuple[Facts, datetime]:
    """Recorded facts, and when they were read (UTC). Secrets in probes and answers are masked.

    Raises ``InputError``.
    """
    try:
        # Not by pydantic's own parser: a host's name may contain a lone surrogate.
        kept = _kept_adapter().validate_python(json.loads(gzip.decompress(path.read_bytes())))
        at = datetime.fromisoformat(kept.at)
    except OSError as error:  # also what gzip raises for another kind of file
        raise InputError(f"cannot be read: {error.strerror or error}", str(path)) from error
    except (ValueError, EOFError, zlib.error) as error:
        raise InputError("does not contain the facts of a host, or is damaged", str(path)) from error
    facts = {
        Probe(row.script, row.root, row.cap_bytes): Answer(row.status, row.text, row.truncated, row.late_s)
        for row in kept.facts
    }
    return Facts(facts), at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
