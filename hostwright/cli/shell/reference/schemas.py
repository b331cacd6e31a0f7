"""JSON Schemas for the files that users write, generated from the models that read these files.

The schemas accept every file that ``hostwright check`` accepts. The schemas miss some mistakes, because any value may
be a template, and an inventory may contain variables of other tools.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from hostwright.cli.shell.reference.variables import OWN
from hostwright.cli.tasks import settings
from hostwright.common.input.passwordcommand import SUFFIX
from hostwright.common.input.validation import secret_names
from hostwright.inventory.binding import COMMANDS, KNOWN, MAPPINGS, OURS
from hostwright.inventory.connection import VARIABLES as OF_CONNECTIONS
from hostwright.plan.roles.meanings import meanings
from hostwright.plan.roles.role import Role
from hostwright.plan.roles.site import STANDARD
from hostwright.rebuild.install.seeds.settings import Install, Reinstall
from hostwright.stack.stack import Artifact
from hostwright.stack.stackfile import stack_model

Schema = dict[str, Any]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
#: folder with the JSON Schemas of the ``--json`` outputs
OUTPUTS = STANDARD / "schemas"
TEMPLATE: Schema = {"type": "string", "pattern": r"\{[{%]"}
#: type in a JSON Schema → pattern of texts that pydantic converts to this type
_AS_TEXT = {
    "integer": r"^\s*[+-]?[0-9][0-9_]*(\.0*)?\s*$",
    "number": r"^\s*[+-]?([0-9][0-9_]*\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$",
    "boolean": r"^([tTyYfFnN01]|[tT][rR][uU][eE]|[yY][eE][sS]|[oO][nN]|[fF][aA][lL][sS][eE]|[nN][oO]|[oO][fF][fF])$",
}

_NAMED = ("properties", "patternProperties", "$defs")  #: keys of a JSON Schema whose values map names to schemas


def written(roles: Sequence[Role]) -> Mapping[str, Callable[[], Schema]]:
    """Return a generator of the JSON Schema for each kind of file that users write, with the variables of ``roles``."""
    return {
        "inventory": lambda: _titled("a file of inventory/: hosts and groups", inventory(roles)),
        "variables": lambda: _titled("a file of group_vars/ or host_vars/", variables(roles)),
        "workspaces": lambda: _titled("inventory/workspaces.yml: people and their containers", workspaces(roles)),
        "stack": lambda: _titled("a file of inventory/stacks/: versions and files", stack(roles)),
        "settings": lambda: _titled("hostwright.toml: settings of the site, and defaults of options", options()),
    }


def printed() -> Mapping[str, Path]:
    """Return kind of ``--json`` document → file with the document's JSON Schema."""
    return {f"json/{path.stem}": path for path in sorted(OUTPUTS.glob("*/*.json"))}


def rendered(schema: Schema) -> str:
    """Return ``schema`` as JSON text."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def _titled(title: str, schema: Schema) -> Schema:
    return {"$schema": DRAFT, "title": title, **schema}


def inventory(roles: Sequence[Role]) -> Schema:
    """Return the schema of an inventory file: hosts and groups, as in Ansible's YAML."""
    of_variables = variables(roles)
    definitions = of_variables.pop("$defs")
    group = {
        "type": ["object", "null"],
        "properties": {
            "hosts": {"type": ["object", "null"], "additionalProperties": _or_null({"$ref": "#/$defs/variables"})},
            "vars": _or_null({"$ref": "#/$defs/variables"}),
            "children": {"type": ["object", "null"], "additionalProperties": {"$ref": "#/$defs/group"}},
        },
        "additionalProperties": False,
    }
    return {
        "type": ["object", "null"],
        "additionalProperties": {"$ref": "#/$defs/group"},
        "$defs": {**definitions, "group": group, "variables": of_variables},
    }


def workspaces(roles: Sequence[Role]) -> Schema:
    """Return the schema of ``inventory/workspaces.yml``, an inventory with variables of the role
    ``workspaces`` only.
    """
    role = [role for role in roles if role.name == "workspaces"]
    schema = inventory(role)
    names = schema["$defs"]["variables"]["properties"]
    schema["$defs"]["variables"]["properties"] = {name: names[name] for name in names if name.startswith("workspaces")}
    schema["$defs"]["variables"]["additionalProperties"] = False
    return schema


def variables(roles: Iterable[Role]) -> Schema:
    """Return the schema of variables in an inventory: variables of ``roles``, single or in mappings, and all others."""
    properties: Schema = {name: {"description": "how the host is reached, as in Ansible"} for name in OF_CONNECTIONS}
    properties |= {name: {"description": text} for rows in OWN.values() for name, text in rows.items()}
    definitions: Schema = {}
    bound: list[tuple[str, type]] = [(role.name, role.variables) for role in roles]
    for name, cls in (*bound, (f"{OURS}install", Install), (f"{OURS}reinstall", Reinstall)):
        fields = _fields(name, cls, definitions)
        properties |= {f"{name}_{field}": schema for field, schema in fields.items()}
        properties[name] = _mapping(fields, strict=name.startswith(OURS))
    known = [f"{OURS}{name}" for name in (*KNOWN, *COMMANDS)]
    further = "|".join(MAPPINGS)
    names = {"anyOf": [{"not": {"pattern": f"^{OURS}"}}, {"enum": known}, {"pattern": f"^{OURS}({further})_"}]}
    return {"type": ["object", "null"], "properties": properties, "propertyNames": names, "$defs": definitions}


def _mapping(fields: Schema, *, strict: bool) -> Schema:
    closed: Schema = {"type": ["object", "null"], "properties": fields, "additionalProperties": False}
    if strict or not fields:
        return closed if strict else {}
    ours = {"type": "object", "anyOf": [{"required": [name]} for name in fields]}
    return {"properties": fields, "if": ours, "then": closed}


def _fields(role: str, cls: type, definitions: Schema) -> Schema:
    template = f"#/$defs/{role}.{{model}}"
    whole = TypeAdapter(cls).json_schema(ref_template=template)
    definitions |= {f"{role}.{name}": _loose(inner) for name, inner in whole.pop("$defs", {}).items()}
    descriptions, properties = meanings(cls), whole.get("properties", {})
    fields = {
        one.name: {"description": descriptions.get(one.name, ""), **_loose(properties.get(one.name, {}))}
        for one in dataclasses.fields(cls)
    }
    command = {"type": ["string", "null"], "description": "a command that prints it"}
    return fields | {f"{name}{SUFFIX}": command for name in secret_names(cls)}


def _loose(schema: Any, *, inside: bool = False) -> Any:
    """Extend pydantic's ``schema`` to templates and to texts that pydantic converts. Unknown keys are rejected."""
    if isinstance(schema, list):
        return [_loose(each, inside=True) for each in schema]
    if not isinstance(schema, dict):
        return schema
    loose = {
        key: {name: _loose(inner, inside=True) for name, inner in value.items()}
        if key in _NAMED
        else _loose(value, inside=True)
        if key in ("items", "additionalProperties", "anyOf", "oneOf", "prefixItems")
        else value
        for key, value in schema.items()
        if key not in ("title", "default", "format", "discriminator")
    }
    if "properties" in loose or "patternProperties" in loose:
        loose.setdefault("additionalProperties", False)
    kind = loose.get("type")
    if kind in _AS_TEXT:
        text = [{"type": "string", "pattern": _AS_TEXT[str(kind)]}, TEMPLATE]
        more = [{"enum": [0, 1]}] if kind == "boolean" else []
        return {"anyOf": [loose, *more, *text]}
    if kind in ("object", "array") or "enum" in loose or "const" in loose or "pattern" in loose or "$ref" in loose:
        return {"anyOf": [loose, TEMPLATE]} if inside or kind != "object" else loose
    return loose


#: keys of a stack file that name other stack files → schema of the key's value
_MERGED = {"extends": {"type": "string"}, "include": {"type": "array", "items": {"type": "string"}}}


def stack(roles: Iterable[Role]) -> Schema:
    """Return the schema of a stack file. In a file that extends or includes others, no key is required.

    In such a file, a null removes an entry.
    """
    whole = stack_model({role.name: role.section for role in roles}).model_json_schema()
    definitions = {name: _closed(inner) for name, inner in whole.pop("$defs", {}).items()}
    # a stack file omits ``name``, which comes from the file's name or the artifact's key
    for part in (whole, definitions[Artifact.__name__]):
        part["properties"].pop("name")
        part["required"] = [name for name in part["required"] if name != "name"]
    whole["required"].append("roles")
    part = _part({**whole, "properties": {**whole["properties"], **_MERGED}})
    return {
        "type": "object",
        "if": {"anyOf": [{"required": [key]} for key in _MERGED]},
        "then": part,
        "else": whole,
        "$defs": {**definitions, **{f"part.{name}": _part(inner) for name, inner in definitions.items()}},
    }


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    return {"additionalProperties": False, **closed} if "patternProperties" in closed else closed


def _part(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_part(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    part = {key: value for key, value in schema.items() if key not in ("required", "default", "minProperties")}
    for key in _NAMED:
        part |= {key: {name: _or_null(_part(inner)) for name, inner in part[key].items()}} if key in part else {}
    if isinstance(part.get("additionalProperties"), dict):
        part["additionalProperties"] = _or_null(_part(part["additionalProperties"]))
    for key in ("items", "anyOf", "allOf"):
        part |= {key: _part(part[key])} if key in part else {}
    if "$ref" in part:
        part["$ref"] = part["$ref"].replace("#/$defs/", "#/$defs/part.")
    return part


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def options() -> Schema:
    """Return the schema of ``hostwright.toml``: the tables ``[options]`` and ``[site]``."""
    kinds = {bool: {"type": "boolean"}, int: {"type": "integer"}, str: {"type": ["string", "integer"]}}
    texts: Schema = {"type": ["array", "string"], "items": {"type": "string"}}
    properties = {name: kinds.get(kind, texts) for name, kind in sorted(settings.in_file().items())}
    table = {"type": "object", "properties": properties, "additionalProperties": False}
    site = {name: {"type": "string"} for name in settings.OF_SITE}
    tables = {settings.TABLE: table, settings.SITE: {**table, "properties": site}}
    return {"type": "object", "properties": tables, "additionalProperties": False}
