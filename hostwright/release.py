"""The release record that a host carries: which stack it was brought to, from which files, when, and by which run.

It is written when a look finds nothing left to do, and again only when what is desired has changed: a host that is as
desired and says so is not touched. ``/var/lib/hostwright/release.json`` is for reading by anybody on the host.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hostwright.model import Facts, Probe, Resource
from hostwright.quoting import sh
from hostwright.stack import Stack
from hostwright.untrusted import json_object

if TYPE_CHECKING:
    from hostwright.planning import Desired, DesiredRole  # which asks every host for its record

SCHEMA = 1
STATE_DIGITS = 16  #: of a state's hash that are kept
PATH = "/var/lib/hostwright/release.json"
RELEASE = Probe(f"cat {PATH}")

#: Written beside and renamed: whoever reads sees the former record or this one, never half of one.
_WRITE = """\
umask 022
mkdir -p "${path%/*}"
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
    """A hash of all that a role wants of a host; equal states give equal hashes on every machine."""
    return hashlib.sha256("\n".join(map(repr, role.resources)).encode()).hexdigest()


def state_sha256(resource: Resource) -> str:
    """The beginning of a hash of one desired state: enough to tell the hundred states of a role apart."""
    return hashlib.sha256(repr(resource).encode()).hexdigest()[:STATE_DIGITS]


def read(facts: Facts) -> Mapping[str, Any]:
    """The record that the host carries; empty where there is none or it is not one of ours."""
    record = json_object(facts[RELEASE].text) or {}
    if record.get("schema") != SCHEMA or not isinstance(record.get("roles"), dict):
        return {}
    return record


def renewed(desired: Desired, before: Mapping[str, Any], run: Run) -> dict[str, Any] | None:
    """The record of a host on which these roles were found as desired; ``None`` where ``before`` says the same.

    Roles that this run did not look at keep what an earlier one wrote, as long as it was the same stack.
    """
    stack, versions = desired.stack, versions_of(desired.stack)
    same = before.get("stack") == stack.name and before.get("versions") == versions
    kept = {name: entry for name, entry in before.get("roles", {}).items() if same and isinstance(entry, dict)}
    now = {role.name: desired_sha256(role) for role in desired.roles}
    if same and all(kept.get(name, {}).get("desired") == sha256 for name, sha256 in now.items()):
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
    hashes = "\n".join(f"{name} {roles[name]['desired']}" for name in sorted(roles))
    return {
        "schema": SCHEMA,
        "stack": stack.name,
        "versions": versions,
        "artifacts": {
            name: {"file": one.file, "sha256": one.sha256, "stand_in": one.stand_in}
            for name, one in sorted(stack.artifacts.items())
        },
        "roles": dict(sorted(roles.items())),
        "desired": hashlib.sha256(hashes.encode()).hexdigest(),
        "run": run.id,
        "operator": run.operator,
        "at": run.at,
        "commit": run.commit,
    }


def _differs(kept: Mapping[str, Any], name: str, sha256: str) -> bool:
    return bool(kept.get(name, {}).get("desired") != sha256)


def versions_of(stack: Stack) -> dict[str, str]:
    """The version of each part of a stack."""
    return {
        "driver": stack.driver.version,
        "cuda": stack.cuda.version,
        "nvcc": stack.cuda.nvcc,
        "cudnn": stack.cudnn.version,
        "tensorflow": stack.tensorflow.version,
        "container-toolkit": stack.container.toolkit.version,
    }


def write_script(record: Mapping[str, Any], path: str = PATH) -> str:
    """A root program that writes the record: whole, or not at all."""
    text = json.dumps(record, indent=2, sort_keys=False)
    return "set -eu\n" + sh("path=%s record=%s\n", path, text) + _WRITE
