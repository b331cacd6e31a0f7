"""Executable inventories: programs that answer ``--list`` with Ansible's JSON."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from hostwright.common.errors import InputError
from hostwright.common.input.validation import describe
from hostwright.common.input.yamlfile import Origin
from hostwright.inventory.draft import Draft, Values, concealed, group_level
from hostwright.inventory.model import ALL, HOST_LEVEL, Value

TIMEOUT_S = 120.0  #: the API of a cloud or of MAAS may be slow; if it takes longer, it is broken


def read_executable(path: Path, draft: Draft) -> None:
    """Run an inventory program and add its answer to the draft. Raises ``InputError`` when it fails."""
    answer = _ask(path, "--list")
    origin = Origin(str(path))
    meta = answer.pop("_meta", None)
    for name, body in answer.items():
        _group(name, {"hosts": body} if isinstance(body, list) else body, origin, draft)
    hostvars = meta.get("hostvars", {}) if isinstance(meta, dict) else None
    if hostvars is None:  # the old form: one call per host
        hostvars = {host: _ask(path, "--host", host) for host in list(draft.hosts)}
    for host, values in hostvars.items():
        group = draft.group(ALL, origin)
        draft.add_hosts(group, host, _values(values, HOST_LEVEL, origin, draft, f"_meta.hostvars.{host}"), origin)


def _ask(path: Path, *arguments: str) -> dict[str, Any]:
    command = f"`{path.name} {' '.join(arguments)}`"
    try:
        done = subprocess.run([path.resolve(), *arguments], capture_output=True, timeout=TIMEOUT_S, check=False)
    except OSError as error:
        raise InputError(f"cannot be run: {error.strerror}; an inventory program needs a #! line", str(path)) from error
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{command} did not answer within {TIMEOUT_S:.0f} s", str(path)) from error
    if done.returncode != 0:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise InputError(f"{command} ended with status {done.returncode}: {(last or ['no message'])[0]!r}", str(path))
    try:
        answer = json.loads(done.stdout)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{command} did not print JSON: {error}", str(path)) from error
    if not isinstance(answer, dict):
        raise InputError(f"{command} printed {describe(answer)}, expected a JSON object", str(path))
    return answer


def _group(name: str, body: Any, origin: Origin, draft: Draft) -> None:
    if not isinstance(body, dict):
        draft.fail(origin, f"the group {name}: found {describe(body)}, expected an object or a list of hosts")
        return
    group = draft.group(name, origin)
    for host in _names(body.get("hosts"), f"the hosts of {name}", origin, draft):
        draft.add_hosts(group, host, {}, origin)
    for child in _names(body.get("children"), f"the children of {name}", origin, draft):
        draft.group(child, origin)
        group.children[child] = origin
    values = _values(body.get("vars"), group_level(name), origin, draft, f"the vars of {name}")
    if values:
        group.layers.append(values)


def _names(listed: Any, what: str, origin: Origin, draft: Draft) -> list[str]:
    names = list(listed) if isinstance(listed, (list, dict)) else []
    is_list = listed is None or isinstance(listed, (list, dict))
    if not is_list or not all(isinstance(name, str) for name in names):
        draft.fail(origin, f"{what}: found {describe(listed)}, expected a list of names")
        return []
    return names


def _values(mapping: Any, level: str, origin: Origin, draft: Draft, what: str) -> Values:
    if mapping is None:
        return {}
    if not isinstance(mapping, dict):
        draft.fail(origin, f"{what}: found {describe(mapping)}, expected an object")
        return {}
    return {name: Value(concealed(name, value), origin, level) for name, value in mapping.items()}
