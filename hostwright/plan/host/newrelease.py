"""Creates the release records that are written to hosts (``plan.host.release``)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from hostwright.common.canonical import hash_of
from hostwright.common.quoting import sh_file
from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.host.release import (
    FORMER,
    MOST_FORMER,
    PATH,
    SCHEMA,
    RunStamp,
    about,
    at_of,
    digest_of,
    names_stack,
    schema_of,
)
from hostwright.plan.model import Resource
from hostwright.plan.state_identity import identity_of
from hostwright.stack.stack import RoleFile, Stack

STATE_DIGITS = 16  #: number of hex digits to keep of the hash of a desired state


def desired_sha256(role: DesiredRole) -> str:
    """Return a hash of a role's desired states. The hash is the same on all machines and in later versions of
    Hostwright.
    """
    return hash_of([identity_of(resource) for resource in role.resources])


def state_sha256(resource: Resource) -> str:
    """Return the hash of a desired state, shortened to ``STATE_DIGITS`` hex digits."""
    return hash_of(identity_of(resource))[:STATE_DIGITS]


def renewed(desired: Desired, before: Mapping[str, Any], run: RunStamp) -> dict[str, Any] | None:
    """Return the new release record for a host that is as ``desired``; ``None`` if the host's record is up to date.

    Roles that are not in ``desired`` keep their entries if the host's record ``before`` has the same stack.
    """
    stack = desired.stack
    same = names_stack(before, stack)
    kept = {name: entry for name, entry in before.get("roles", {}).items() if same and isinstance(entry, dict)}
    now = {role.name: desired_sha256(role) for role in desired.roles}
    recorded = same and schema_of(before) == SCHEMA and digest_of(before) == stack.digest()
    if recorded and all(kept.get(name, {}).get("desired") == sha256 for name, sha256 in now.items()):
        return None
    states = {role.name: [state_sha256(resource) for resource in role.resources] for role in desired.roles}
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
        "versions": stack.versions(),
        "artifacts": {
            name: {"file": artifact.file, "sha256": artifact.sha256, "stand_in": artifact.stand_in}
            for name, artifact in sorted(stack.artifacts.items())
            if not isinstance(artifact, RoleFile)
        },
        "roles": dict(sorted(roles.items())),
        "desired": _whole(roles),
        "run": run.id,
        "operator": run.operator,
        "at": run.at,
        "commit": run.commit,
    }


def reduced(before: Mapping[str, Any], gone: Iterable[str]) -> dict[str, Any] | None:
    """Return the release record ``before`` without the removed roles ``gone``.

    The result is empty if no role remains, and ``None`` if nothing changes.
    """
    roles = before.get("roles", {})
    left = {name: entry for name, entry in roles.items() if name not in set(gone)}
    if not before or left == roles:
        return None
    return {**before, "roles": left, "desired": _whole(left)} if left else {}


def _whole(roles: Mapping[str, Any]) -> str:
    return hash_of({name: entry.get("desired", "") for name, entry in roles.items() if isinstance(entry, dict)})


def _differs(kept: Mapping[str, Any], name: str, sha256: str) -> bool:
    return bool(kept.get(name, {}).get("desired") != sha256)


def former_name(before: Mapping[str, Any], stack: Stack) -> str:
    """Return the file name under which the record ``before`` is kept when ``stack`` replaces its stack; empty if not
    kept.

    Only the valid time and hex digits of ``before`` are used, because the host's record is untrusted.
    """
    if not before or about(before, stack):
        return ""
    return f"{at_of(before) or '0000'}-{(digest_of(before) or 'unknown')[:12]}.json"


def write_script(
    record: Mapping[str, Any], path: str = PATH, *, former: str = "", folder: str = FORMER, seen: Iterable[str] = ()
) -> str:
    """Return a shell program for root that writes the release record to ``path`` atomically.

    The previous record becomes the file ``former`` in ``folder``. ``seen`` are the roles that this run checked. The
    modification time of ``path`` changes only if ``seen`` has all roles of ``record``.
    """
    text = json.dumps(record, indent=2, sort_keys=False)
    values = {"path": path, "record": text, "name": former, "folder": folder, "first": MOST_FORMER + 1}
    values["whole"] = "yes" if set(seen).issuperset(record.get("roles", ())) else ""
    return sh_file(__file__, "newrelease.sh", **values)
