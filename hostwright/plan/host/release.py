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

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hostwright.common.canonical import hash_of
from hostwright.common.quoting import sh
from hostwright.common.untrusted import json_object
from hostwright.plan.model import Facts, Probe, Resource
from hostwright.plan.state_identity import identity_of
from hostwright.stack.stack import Stack

if TYPE_CHECKING:
    from hostwright.plan.planning import Desired, DesiredRole  # which asks every host for its record

SCHEMA = 2
STATE_DIGITS = 16  #: of a state's hash that are kept
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

#: Written beside and renamed: whoever reads sees the former record or this one, never half of one. A stack has one
#: former record, its last; ``ls`` sorts by time, since the names begin with it.
_WRITE = """\
umask 022
mkdir -p "${path%/*}"
if [ -n "$name" ] && [ -f "$path" ]; then
  mkdir -p "$folder"
  rm -f "$folder"/*"-${name##*-}"
  cp -p "$path" "$folder/$name.new"
  sync "$folder/$name.new"
  mv -f "$folder/$name.new" "$folder/$name"
  ls -1r "$folder" | grep '[.]json$' | tail -n "+$first" | while read -r old; do rm -f "$folder/$old"; done
fi
printf '%s\\n' "$record" >"$path.new"
sync "$path.new"
mv -f "$path.new" "$path"
"""


@dataclass(frozen=True, slots=True)
class Run:
    """The run that brings a host to its stack: its id, who runs it, when (UTC, ISO 8601), and the project's commit."""

    id: str
    operator: str = ""
    at: str = ""
    commit: str = ""


def desired_sha256(role: DesiredRole) -> str:
    """A hash of all that a role wants of a host; equal states give equal hashes everywhere, in later versions too."""
    return hash_of([identity_of(one) for one in role.resources])


def state_sha256(resource: Resource) -> str:
    """The beginning of a hash of one desired state: enough to tell the hundred states of a role apart."""
    return hash_of(identity_of(resource))[:STATE_DIGITS]


def read(facts: Facts) -> Mapping[str, Any]:
    """The record that the host carries; empty where there is none or it is not one of ours.

    Whoever writes a record asks ``refusal`` first: one that this version cannot read is not one that is not there.
    """
    return _record(facts[RELEASE].text)


def refusal(facts: Facts) -> str:
    """Why the host is not for this version of Hostwright; empty where it is, or where nobody asked for its record."""
    record = json_object(facts[RELEASE].text) if RELEASE in facts else None
    if _schema(record or {}) <= SCHEMA:
        return ""
    return f"its release record {PATH} was written by a newer Hostwright than this one: upgrade Hostwright here"


def formers(facts: Facts) -> tuple[Mapping[str, Any], ...]:
    """The records of the stacks that the host had before, the latest first. Reads ``FORMERS``."""
    found = [record for line in facts[FORMERS].text.splitlines() if (record := _record(line))]
    return tuple(sorted(found, key=at_of, reverse=True)[:MOST_FORMER])


def _record(text: str) -> dict[str, Any]:
    record = json_object(text) or {}
    roles = record.get("roles")
    if _schema(record) not in (1, SCHEMA) or not isinstance(roles, dict):
        return {}
    return (
        record if _schema(record) == SCHEMA else {**record, "roles": {name: _bare(one) for name, one in roles.items()}}
    )


def _schema(record: Mapping[str, Any]) -> int:
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
    return digest == stack.digest() if digest and _schema(record) == SCHEMA else _names(record, stack)


def _names(record: Mapping[str, Any], stack: Stack) -> bool:
    """Whether name and versions of a record are the stack's. A version that only later records name tells nothing."""
    named, versions = record.get("versions"), versions_of(stack)
    known = isinstance(named, dict) and bool(named) and all(versions.get(key) == named[key] for key in named)
    return known and record.get("stack") == stack.name


def renewed(desired: Desired, before: Mapping[str, Any], run: Run) -> dict[str, Any] | None:
    """The record of a host on which these roles were found as desired; ``None`` where ``before`` says the same.

    Roles that this run did not look at keep what an earlier one wrote, as long as it was the same stack.
    """
    stack, versions = desired.stack, versions_of(desired.stack)
    same = _names(before, stack)
    kept = {name: entry for name, entry in before.get("roles", {}).items() if same and isinstance(entry, dict)}
    now = {role.name: desired_sha256(role) for role in desired.roles}
    told = same and _schema(before) == SCHEMA and digest_of(before) == stack.digest()
    if told and all(kept.get(name, {}).get("desired") == sha256 for name, sha256 in now.items()):
        return None
    states = {role.name: [state_sha256(one) for one in role.resources] for role in desired.roles}
    entry = {"run": run.id, "at": run.at}
    roles = {
        **kept,
        **{
            name: {"desired": sha256, **entry, "states": states[name]}
            for name, sha256 in now.items()
            if _differs(kept, name, sha256)
        },
    }
    return {
        "schema": SCHEMA,
        "stack": stack.name,
        "digest": stack.digest(),
        "versions": versions,
        "artifacts": {
            name: {"file": one.file, "sha256": one.sha256, "stand_in": one.stand_in}
            for name, one in sorted(stack.artifacts.items())
        },
        "roles": dict(sorted(roles.items())),
        "desired": _whole(roles),
        "run": run.id,
        "operator": run.operator,
        "at": run.at,
        "commit": run.commit,
    }


def reduced(before: Mapping[str, Any], gone: Iterable[str]) -> dict[str, Any] | None:
    """The record of a host from which these roles were taken away; empty when none is left, ``None`` when nothing is
    to be written because the record names none of them. It keeps its schema, to which its digest belongs."""
    roles = before.get("roles", {})
    left = {name: entry for name, entry in roles.items() if name not in set(gone)}
    if not before or left == roles:
        return None
    return {**before, "roles": left, "desired": _whole(left)} if left else {}


def _whole(roles: Mapping[str, Any]) -> str:
    """A hash over what all these roles want."""
    return hash_of({name: one.get("desired", "") for name, one in roles.items() if isinstance(one, dict)})


def _differs(kept: Mapping[str, Any], name: str, sha256: str) -> bool:
    return bool(kept.get(name, {}).get("desired") != sha256)


def versions_of(stack: Stack) -> dict[str, str]:
    """The version of each part of a stack."""
    return stack.versions()


def former_name(before: Mapping[str, Any], stack: Stack) -> str:
    """The name under which the record ``before`` is kept when one of ``stack`` replaces it; empty when it is not.

    It comes from a host: nothing of it gets into a name but a time and hexadecimal digits.
    """
    if not before or about(before, stack):
        return ""
    return f"{at_of(before) or '0000'}-{(digest_of(before) or 'unknown')[:12]}.json"


def write_script(record: Mapping[str, Any], path: str = PATH, *, former: str = "", folder: str = FORMER) -> str:
    """A root program that writes the record: whole, or not at all. ``former`` names the one before, to be kept."""
    text = json.dumps(record, indent=2, sort_keys=False)
    values = sh("path=%s record=%s name=%s folder=%s first=%s\n", path, text, former, folder, MOST_FORMER + 1)
    return f"set -eu\n{values}{_WRITE}"
