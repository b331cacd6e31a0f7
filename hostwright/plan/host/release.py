"""The release record that a host carries: which stack it was brought to, from which files, when, and by which run.

It is written when a look finds nothing left to do, and again only when what is desired has changed: a host that is as
desired and says so is not touched. ``/var/lib/hostwright/release.json`` is for reading by anybody on the host; the
records of the stacks before are in ``releases`` beside it. A record names its stack by digest and never holds it: what
a host says must not choose what is installed.

Its hashes are of identities (``state_identity``, ``stackdata``), which stay the same in later versions of Hostwright.
Those of schema 1 cannot be made any more: such a record tells stack, versions and roles, and why a state differs is not
known until the next provisioning has written it anew. A record of a schema above ours is never replaced.
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
FORMER = "/var/lib/hostwright/releases"  #: the records of stacks before, ``AT-DIGEST.json``
MOST_FORMER = 5  #: that are kept; each is some kilobytes, and nobody goes further back
#: The former records, each on one line: there is no line break inside a text of JSON. 64 KiB is ten times a record.
FORMERS = Probe(
    f'for file in {FORMER}/*.json; do [ ! -f "$file" ] || {{ head -c 65536 -- "$file" | tr -d "\\n"; echo; }}; done',
    cap_bytes=2 * MOST_FORMER * 65536,
)
_AT = re.compile(r"[0-9]{4}-[0-9A-Za-z:+.-]{1,40}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class RunStamp:
    """The run that brings a host to its stack: its id, who runs it, when (UTC, ISO 8601), and the project's commit."""

    id: str
    operator: str = ""
    at: str = ""
    commit: str = ""


def read(facts: Facts) -> Mapping[str, Any]:
    """The record that the host carries; empty where there is none or it is not one of ours.

    Whoever writes a record asks ``refusal`` first: one that this version cannot read is not one that is not there.
    """
    return _record(facts[RELEASE].text)


def refusal(facts: Facts) -> str:
    """Why the host is not for this version of Hostwright; empty where it is, or where nobody asked for its record."""
    record = json_object(facts[RELEASE].text) if RELEASE in facts else None
    if schema_of(record or {}) <= SCHEMA:
        return ""
    return f"its release record {PATH} was written by a newer Hostwright than this one: upgrade Hostwright here"


def formers(facts: Facts) -> tuple[Mapping[str, Any], ...]:
    """The records of the stacks that the host had before, the latest first. Reads ``FORMERS``."""
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
    """The schema of a record; 0 where it names none."""
    schema = record.get("schema")
    return schema if isinstance(schema, int) and not isinstance(schema, bool) else 0


def _bare(entry: Any) -> Any:
    """A role's entry without hashes that nobody can make again: the role is there, and no more is known."""
    return {key: entry[key] for key in ("run", "at") if key in entry} if isinstance(entry, dict) else entry


def digest_of(record: Mapping[str, Any]) -> str:
    """The digest of the stack that a record is about; empty where a record of an earlier Hostwright has none."""
    digest = record.get("digest")
    return digest if isinstance(digest, str) and _DIGEST.fullmatch(digest) else ""


def at_of(record: Mapping[str, Any]) -> str:
    """When a record was written (UTC, ISO 8601); empty where it does not say so in any such form."""
    at = record.get("at")
    return at if isinstance(at, str) and _AT.fullmatch(at) else ""


def about(record: Mapping[str, Any], stack: Stack) -> bool:
    """Whether a record is about this stack, as its file reads now; one of schema 1 names it by its versions alone."""
    digest = digest_of(record)
    return digest == stack.digest() if digest and schema_of(record) == SCHEMA else names_stack(record, stack)


def names_stack(record: Mapping[str, Any], stack: Stack) -> bool:
    """Whether name and versions of a record are the stack's. A version that only later records name tells nothing."""
    named, versions = record.get("versions"), stack.versions()
    known = isinstance(named, dict) and bool(named) and all(versions.get(key) == named[key] for key in named)
    return known and record.get("stack") == stack.name
