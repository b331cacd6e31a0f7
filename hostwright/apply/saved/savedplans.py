"""Plans in a file: ``plan --out`` writes them, ``provision --plan`` reads them. Another version's file is refused.

A saved plan is applied only if it equals a new plan, so old formats need no support. If the site requires signatures, a
signature is stored beside the file (``signing``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from hostwright.apply.journal.redaction import Redactor
from hostwright.apply.saved import signing
from hostwright.apply.saved.signing import Signing
from hostwright.common.command import Command
from hostwright.common.errors import InputError
from hostwright.common.input.adapter import adapter
from hostwright.common.places import ANOTHER_FILE, PRIVATE_FILE, refused, unread, write_whole
from hostwright.common.untrusted import json_object
from hostwright.plan.model import Plan

SCHEMA: Literal[2] = 2
AGAIN = f"run {Command('plan', out='FILE')} again"
UNSIGNED = Signing()


@dataclass(frozen=True, slots=True)
class _SavedPlans:
    schema: Literal[2]
    plans: dict[str, Plan]


def save(path: Path, plans: Iterable[Plan], redactor: Redactor, signed: Signing = UNSIGNED) -> None:
    """Write ``plans`` without secrets to a private file, and a signature beside it if ``signed`` has a key.

    Raises ``InputError`` if the file cannot be written or signed, or if ``signed.signers`` do not accept the signature.
    """
    document = {"schema": SCHEMA, "plans": {plan.host: redactor.plan(plan).to_json() for plan in plans}}
    content = f"{json.dumps(document, indent=2)}\n".encode()
    signature = signing.sign(content, signed.key) if signed.key else b""
    try:
        write_whole(path, content, PRIVATE_FILE)
        if signature:
            write_whole(signing.signature_path(path), signature, PRIVATE_FILE)
    except OSError as error:
        raise InputError(f"cannot be written: {refused(error, ANOTHER_FILE)}", str(path)) from error
    signing.verify(path, content, signed.signers)


def load(path: Path, signers: Sequence[Path] = ()) -> dict[str, Plan]:
    """Return the plans in the file ``path``, by host.

    Raises ``InputError`` for an unreadable or invalid file, or unless every file of ``signers`` accepts the signature.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {unread(error)}", str(path)) from error
    signing.verify(path, text, signers)
    try:
        return adapter(_SavedPlans).validate_json(text, strict=True).plans
    except ValidationError as error:
        fault = _fault(json_object(text.decode("utf-8", errors="replace")) or {})
        raise InputError(f"{fault}; {AGAIN}", str(path)) from error


def load_for(hosts: Iterable[str], path: Path, signers: Sequence[Path] = ()) -> dict[str, Plan]:
    """Return the plans in the file ``path``, by host.

    Raises ``InputError`` as ``load`` does, and if one of ``hosts`` has no plan.
    """
    plans = load(path, signers)
    missing = [host for host in hosts if host not in plans]
    if missing:
        raise InputError(f"contains no plan for {', '.join(missing)}", str(path))
    return plans


def _fault(document: Mapping[str, Any]) -> str:
    schema = document.get("schema", 1)
    if isinstance(schema, int) and schema > SCHEMA:
        return "was saved by a newer Hostwright; upgrade Hostwright here, or make a plan with this one"
    if schema == 1 and document and all(isinstance(plan, dict) and "roles" in plan for plan in document.values()):
        return "was saved by an earlier Hostwright"
    return "is not a valid saved plan"
