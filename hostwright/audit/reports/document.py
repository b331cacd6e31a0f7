"""An audit as one JSON document, and the schema of that document."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from hostwright.audit.fleetaudit import SCHEMA, FleetAudit
from hostwright.common.input.adapter import adapter, json_schema_of


def render_json(audit: FleetAudit) -> str:
    """Return ``audit`` as JSON on one line, in ASCII, so that no character from a host can affect a terminal."""
    return json.dumps(asdict(audit), ensure_ascii=True)


def read_json(text: str) -> FleetAudit:
    """Parse the output of ``render_json`` back to an audit. Raises ``ValueError`` if the document is invalid."""
    version = json.loads(text).get("schema")
    if version != SCHEMA:
        raise ValueError(f"the document has schema {version!r}, but this Hostwright reads schema {SCHEMA}")
    return adapter(FleetAudit).validate_json(text)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) for the output of ``render_json``."""
    schema = json_schema_of(FleetAudit, "Hostwright audit", "What `invoke audit --json` prints.")
    schema["properties"]["schema"] = {"const": SCHEMA, "title": "Schema", "type": "integer"}
    schema["required"] = sorted({*schema.get("required", ()), "schema"})
    return schema
