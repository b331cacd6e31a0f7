"""An audit as one JSON document, and the schema of that document."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from hostwright.audit.fleetaudit import SCHEMA, FleetAudit


def render_json(audit: FleetAudit) -> str:
    """The audit as JSON in one line, in ASCII, so that no character from a host can affect a terminal."""
    return json.dumps(asdict(audit), ensure_ascii=True)


def read_json(text: str) -> FleetAudit:
    """The audit in a document of this schema. Raises ``ValueError`` for another schema or an invalid document."""
    from pydantic import TypeAdapter

    version = json.loads(text).get("schema")
    if version != SCHEMA:
        raise ValueError(f"it has schema {version!r}, but this Hostwright reads {SCHEMA}")
    return TypeAdapter(FleetAudit).validate_json(text)


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of what ``render_json`` writes."""
    from pydantic import TypeAdapter

    schema = TypeAdapter(FleetAudit).json_schema(mode="serialization")
    schema["properties"]["schema"] = {"const": SCHEMA, "title": "Schema", "type": "integer"}
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Hostwright audit",
        "description": "What `invoke audit --json` prints.",
    }
    required = sorted({*schema.get("required", ()), "schema"})
    return {**head, **{key: schema[key] for key in schema if key not in head}, "required": required}
