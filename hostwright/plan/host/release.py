"""The release record on a host: which stack was installed, from which files, when, and by which run.

A run writes the record when it finds the host as desired, and rewrites it after the desired states have changed. Any
user on the host may read ``/var/lib/hostwright/release.json``; records of earlier stacks are in ``releases`` next to
it. A record contains only the digest of its stack, because a host's data must not determine the software to install.

A record's hashes are hashes of identities (``state_identity``, ``stackdata``). Later versions of Hostwright compute the
same hashes. Records of schema 1 have other hashes. Until the next provisioning, only their stack, versions and roles
are used. A record with a newer schema is never replaced.
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
    """A run that provisions a host: its ID, operator, time (UTC, ISO 8601), and the git commit of the site."""

    id: str
    operator: str = ""
    at: str = ""
    commit: str = ""


def read(facts: Facts) -> Mapping[str, Any]:
    """The host's release record; empty if it is missing, invalid, or of a newer schema (see ``refusal``)."""
    return _record(facts[RELEASE].text)


def refusal(facts: Facts) -> str:
    """The error text if a newer Hostwright wrote the host's release record; else empty."""
    record = json_object(facts[RELEASE].text) if RELEASE in facts else None
    if schema_of(record or {}) <= SCHEMA:
        return ""
    return f"its release record {PATH} was written by a newer Hostwright; upgrade Hostwright on this machine"


def formers(facts: Facts) -> tuple[Mapping[str, Any], ...]:
    """The release records of the host's earlier stacks, latest first."""
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
    """The schema number of a release record; 0 if it has none."""
    schema = record.get("schema")
    return schema if isinstance(schema, int) and not isinstance(schema, bool) else 0


def _bare(entry: Any) -> Any:
    return {key: entry[key] for key in ("run", "at") if key in entry} if isinstance(entry, dict) else entry


def digest_of(record: Mapping[str, Any]) -> str:
    """The stack's digest in a release record; empty for a record of an early Hostwright."""
    digest = record.get("digest")
    return digest if isinstance(digest, str) and _DIGEST.fullmatch(digest) else ""


def at_of(record: Mapping[str, Any]) -> str:
    """The time in a release record (UTC, ISO 8601); empty if it is missing or invalid."""
    at = record.get("at")
    return at if isinstance(at, str) and _AT.fullmatch(at) else ""


def about(record: Mapping[str, Any], stack: Stack) -> bool:
    """Whether ``record`` is about ``stack``: the digests are equal or, in schema 1, the names and versions."""
    digest = digest_of(record)
    return digest == stack.digest() if digest and schema_of(record) == SCHEMA else names_stack(record, stack)


def names_stack(record: Mapping[str, Any], stack: Stack) -> bool:
    """Whether a release record has the name of ``stack``, and only versions that ``stack`` also has."""
    named, versions = record.get("versions"), stack.versions()
    known = isinstance(named, dict) and bool(named) and all(versions.get(key) == named[key] for key in named)
    return known and record.get("stack") == stack.name
