"""The stacks that hosts were verified with, kept on this machine: the way back needs them after their files changed.

A host's record names its stack by digest alone. What is installed is what this machine kept under that digest, so that
a host which lies can choose among verified stacks at most, and never an address or a checksum.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from pydantic import ValidationError

from hostwright.common.places import PRIVATE_DIR, state_root
from hostwright.stack.stack import Stack

FOLDER = "stacks"
_DIGEST = re.compile(r"[0-9a-f]{64}")


def keep(stack: Stack, root: Path | None = None) -> str:
    """Keep a verified stack; empty, or a sentence why it could not be kept.

    That is no error: a full disk here must not make a host that is in order a failed one. ``root`` is
    ``journal.state_root()``.
    """
    digest = stack.digest()
    path = _path(digest, root)
    if find(digest, root) is not None:
        return ""
    try:
        path.parent.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
        _write(path, stack.model_dump_json())
    except OSError as error:
        return (
            f"the stack {stack.name} cannot be kept in {path.parent} ({error.strerror}): `invoke rollback` will not "
            "know it on this machine; make room or mend the directory, and provision again"
        )
    return ""


def find(digest: str, root: Path | None = None) -> Stack | None:
    """The stack with this digest; ``None`` where this machine has none, or what it has is damaged."""
    if not _DIGEST.fullmatch(digest):
        return None
    try:
        stack = Stack.model_validate_json(_path(digest, root).read_bytes())
    except (OSError, ValidationError):
        return None
    return stack if stack.digest() == digest else None


def _path(digest: str, root: Path | None) -> Path:
    return (root or state_root()) / FOLDER / f"{digest}.json"


def _write(path: Path, text: str) -> None:
    """Whole or not at all, and for nobody else: ``mkstemp`` makes files of mode 0600."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
