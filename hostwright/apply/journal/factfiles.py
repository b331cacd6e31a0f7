"""The facts of one look at a host, in a file from which they can be planned with again."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
import zlib
from pathlib import Path
from typing import Any

from hostwright.apply.journal.redaction import Redactor
from hostwright.common.errors import InputError
from hostwright.plan.model import Answer, Facts, Probe

SCHEMA = 1
_LEVEL = 3  #: of gzip: half the time of its default for a tenth more bytes


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
        }
        for probe, answer in facts.items()
    ]
    document = json.dumps({"schema": SCHEMA, "host": host, "at": at, "facts": rows}).encode("ascii")
    data = gzip.compress(document, _LEVEL, mtime=0)
    handle, beside = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    return len(data)


def load_facts(path: Path) -> Facts:
    """Facts that a run kept. A secret in a question or an answer was masked. Raises ``InputError``."""
    try:
        document = json.loads(gzip.decompress(path.read_bytes()))
        return Facts(dict(_row(row) for row in document["facts"]))
    except OSError as error:  # gzip's own complaint about a file that is none is one as well
        raise InputError(f"cannot be read: {error.strerror or error}", str(path)) from error
    except (ValueError, KeyError, TypeError, EOFError, zlib.error) as error:
        raise InputError("does not hold the facts of a run, or is damaged", str(path)) from error


def _row(row: dict[str, Any]) -> tuple[Probe, Answer]:
    match row:
        case {
            "script": str(script),
            "root": bool(root),
            "cap_bytes": int(cap_bytes),
            "status": int(status),
            "text": str(text),
            "truncated": bool(truncated),
        }:
            return Probe(script, root, cap_bytes), Answer(status, text, truncated)
    raise ValueError("not an answer")
