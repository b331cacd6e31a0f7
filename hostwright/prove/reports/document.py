"""The results of proofs as one JSON document, and the schema of this document."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter

from hostwright.common.input.adapter import adapter, json_schema_of
from hostwright.prove.fleetproof import SCHEMA, FleetProof, HostStatus


def document(fleet: FleetProof) -> dict[str, Any]:
    """Return the results as JSON values. Write them in ASCII, because they contain untrusted text from hosts."""
    whole = asdict(fleet)
    for values, host in zip(whole["hosts"], fleet.hosts, strict=True):
        values["status"] = host.status
    return whole


def render_json(fleet: FleetProof) -> str:
    """Return the results as one line of JSON in ASCII, so that the text cannot affect a terminal."""
    return json.dumps(document(fleet), ensure_ascii=True, allow_nan=False)


def read_json(text: str) -> FleetProof:
    """Parse results that ``render_json`` wrote. Raises ``ValueError`` for another schema or an invalid document."""
    whole = json.loads(text)
    if whole.get("schema") != SCHEMA:
        raise ValueError(f"the document has schema {whole.get('schema')!r}, but this Hostwright reads schema {SCHEMA}")
    return adapter(FleetProof).validate_python(whole)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) for the output of ``render_json``."""
    schema = json_schema_of(FleetProof, "Hostwright proofs", "What `invoke prove --json` prints.")
    schema["properties"]["schema"] = {"const": SCHEMA, "title": "Schema", "type": "integer"}
    host = schema["$defs"]["HostProof"]
    host["properties"]["status"] = {"title": "Status", **TypeAdapter(HostStatus).json_schema()}
    host["required"] = sorted({*host["required"], "status"})
    schema["required"] = sorted({*schema.get("required", ()), "schema"})
    return schema
