"""The release record on a host: which stack was installed, from which files, when, and by which run.

The record is written when a run finds the host as desired, and rewritten after the desired states have changed. Any
user on the host may read ``/var/lib/hostwright/release.json``; records of earlier stacks are in ``releases`` next to
it. A record contains its stack's digest, not the stack, because a host's data must not choose what is installed.

Its hashes are hashes of identities (``state_identity``, ``stackdata``), which later versions of Hostwright compute
identically. Schema 1 has other hashes, so its records count only for stack, versions and roles, until the next
provisioning. A record with a newer schema is never replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hostwright.common.untrusted import json_object
from hostwright.plan.model import Facts, Probe
from hostwright.stack.stack import Stack

SCHEMA = 2
PATH = "/var/lib/hostwright/release.json"
RELEASE = Probe(f"cat {PATH}")
#: directory on the host with a file for the record of each earlier stack
FORMER = "/var/lib/hostwright/releases"
MOST_FORMER = 5  #: maximum number of earlier records to keep on a host for rollbacks
#: probe that prints the records of earlier stacks, one per line. JSON strings contain no line breaks.
FORMERS = Probe(
    f'for file in {FORMER}/*.json; do [ ! -f "$file" ] || {{ head -c 65536 -- "$file" | tr -d "\\n"; echo; }}; done',
    cap_bytes=2 * MOST_FORMER * 65536,
)
_AT = re.compile(r"[0-9]{4}-[0-9A-Za-z:+.-]{1,40}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class RunStamp:
    """The run that provisions a host: ID, operator, time (UTC, ISO 8601), and git commit of the site."""

    id: str
    operator: str = ""
    at: str = ""
    commit: str = ""


def read(facts: Facts) -> Mapping[str, Any]:
    """The record on the host; empty if missing, invalid, or of a newer schema.

    Before writing a record, call ``refusal``, which rejects a newer schema.
    """
    return _record(facts[RELEASE].text)


def refusal(facts: Facts) -> str:
    """The error text if a newer Hostwright wrote the host's record; else empty, also if no record was read."""
    record = json_object(facts[RELEASE].text) if RELEASE in facts else None
    if schema_of(record or {}) <= SCHEMA:
        return ""
    return f"its release record {PATH} was written by a newer Hostwright; upgrade Hostwright on this machine"


def formers(facts: Facts) -> tuple[Mapping[str, Any], ...]:
    """The records of the host's earlier stacks, latest first."""
    records = [record for line in facts[FORMERS].text.splitlines() if (record := _record(line))]
    return tuple(sorted(records, key=at_of, reverse=True)[:MOST_FORMER])


def _record(text: str) -> dict[str, Any]:
    record = json_object(text) or {}
    roles = record.get("roles")
    if schema_of(record) not in (1, SCHEMA) or not isinstance(roles, dict):
        return {}
    return (
        record
        if schema_of(record) == SCHEMA
        else {**record, "roles": {name: _bare(entry) for name, entry in roles.items()}}
    )


def schema_of(record: Mapping[str, Any]) -> int:
    """The schema number of a record; 0 without one."""
    schema = record.get("schema")
    return schema if isinstance(schema, int) and not isinstance(schema, bool) else 0


def _bare(entry: Any) -> Any:
    """Return a role's entry without hashes of schema 1, which this version cannot compute."""
    return {key: entry[key] for key in ("run", "at") if key in entry} if isinstance(entry, dict) else entry


def digest_of(record: Mapping[str, Any]) -> str:
    """The digest of the stack in a record; empty for a record of an early Hostwright."""
    digest = record.get("digest")
    return digest if isinstance(digest, str) and _DIGEST.fullmatch(digest) else ""


def at_of(record: Mapping[str, Any]) -> str:
    """The time of a record (UTC, ISO 8601); empty if missing or invalid."""
    at = record.get("at")
    return at if isinstance(at, str) and _AT.fullmatch(at) else ""


def about(record: Mapping[str, Any], stack: Stack) -> bool:
    """Whether a record names this stack with its current digest, or in schema 1 with its versions."""
    digest = digest_of(record)
    return digest == stack.digest() if digest and schema_of(record) == SCHEMA else names_stack(record, stack)


def names_stack(record: Mapping[str, Any], stack: Stack) -> bool:
    """Whether a record has the stack's name and versions. Missing versions are ignored."""
    named, versions = record.get("versions"), stack.versions()
    known = isinstance(named, dict) and bool(named) and all(versions.get(key) == named[key] for key in named)
    return known and record.get("stack") == stack.name
