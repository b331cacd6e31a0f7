"""Implementation of the task ``serve.list``, and comparison of signatures between versions of a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hostwright.cli.verb import Request, RootShell
from hostwright.resources import Facts
from hostwright.roles import sh
from hostwright.standard.roles.serving.states.facts import MODELS_PROBE, ServingFacts, read_models
from hostwright.standard.roles.workspaces.declared.workspace import Workspace
from hostwright.standard.roles.workspaces.states.facts import trouble_with
from hostwright.standard.roles.workspaces.verbs.listing import show_rows
from hostwright.standard.roles.workspaces.verbs.queries import declared_of


@dataclass(frozen=True, slots=True)
class ListedModel:
    """Row of ``serve.list``: one model of a host, with its declaration and its server's state."""

    host: str
    model: str
    versions: str
    live: int
    gpus: str
    state: str
    address: str


COLUMNS: dict[str, Callable[[ListedModel], str]] = {
    "host": lambda row: row.host,
    "model": lambda row: row.model,
    "versions": lambda row: row.versions,
    "live": lambda row: str(row.live),
    "GPUs": lambda row: row.gpus,
    "state": lambda row: row.state,
    "address": lambda row: row.address,
}


def show_list(request: Request) -> int:
    """Run the task ``serve.list``, which prints a row for each declared or installed model."""
    return show_rows(
        request,
        MODELS_PROBE,
        lambda target, facts: rows_of(target.name, declared_of(target), read_models(facts)),
        COLUMNS,
        what="models",
        trouble=trouble_of,
    )


def trouble_of(facts: Facts) -> str:
    """Return an error text if Docker does not respond; else empty."""
    found = read_models(facts)
    return trouble_with(found.docker) if found.docker == "silent" else ""


def rows_of(host: str, declared: tuple[Workspace, ...], found: ServingFacts) -> Iterator[ListedModel]:
    """Yield the declared and installed models of ``host``, ordered by name."""
    known = {space.name: space for space in declared if space.entry.kind == "serving"}
    there = (name for name, model in found.models.items() if model.files)
    for name in sorted({*known, *there}):
        space, model = known.get(name), found.model(name)
        states = model.states
        if states is None:
            state = trouble_with(found.docker).partition(":")[0] or "server does not respond"
        else:
            words = [f"{number} {word.lower()}" for number, word in sorted(states.items()) if number in model.files]
            state = ", ".join(words) or "nothing is served"
        if states and space and model.live != space.entry.live:
            state += f"; live on the host: {model.live or 'none'}"
        if space is None:
            state += ", no longer declared"
        yield ListedModel(
            host,
            name,
            ",".join(map(str, sorted(space.entry.versions if space else model.files))),
            space.entry.live if space else model.live,
            ",".join(space.entry.gpus) if space else "",
            state,
            f"http://127.0.0.1:{space.port}{space.path}/labels/live:predict" if space else "",
        )


def signatures_differ(shell: RootShell, space: Workspace, version: int) -> str:
    """Return the reason why clients of the live version cannot use ``version``; else empty."""
    live, other = (_metadata(shell, space, part) for part in ("labels/live", f"versions/{version}"))
    if isinstance(other, str):
        return f"version {version} of {space.name} does not respond ({other}); provision it first"
    if isinstance(live, str):
        return ""
    for name, signature in sorted(live.items()):
        if name.startswith("__saved_model_"):
            continue
        if name not in other:
            return f"version {version} has no signature {name}, which the live version has"
        for side in ("inputs", "outputs"):
            before, after = (_tensors(definition, side) for definition in (signature, other[name]))
            lost = {tensor: kind for tensor, kind in before.items() if after.get(tensor) != kind}
            new = {tensor: kind for tensor, kind in after.items() if tensor not in before} if side == "inputs" else {}
            if lost or new:
                return (
                    f"version {version} has other {side} in the signature {name} ({_shown(after)}) than the live"
                    f" version ({_shown(before)}), so that its clients would get errors"
                )
    return ""


def _metadata(shell: RootShell, space: Workspace, part: str) -> dict[str, Any] | str:
    address = f"http://127.0.0.1:{space.port}{space.path}/{part}/metadata"
    script = sh("curl -q -s -m 30 --noproxy '*' -- %s", address)
    output = shell.attempt(script, timeout_s=60)
    try:
        document = json.loads(output.stdout)
        signatures = document["metadata"]["signature_def"]["signature_def"]
    except (ValueError, KeyError, TypeError, RecursionError):
        try:
            return str(json.loads(output.stdout)["error"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return "the server cannot be reached"
    return signatures if isinstance(signatures, dict) else "the server's response is invalid"


def _tensors(definition: Any, side: str) -> dict[str, str]:
    tensors = definition.get(side) if isinstance(definition, dict) else None
    if not isinstance(tensors, dict):
        return {}
    return {str(name): _kind(info) for name, info in tensors.items() if isinstance(info, Mapping)}


def _kind(info: Mapping[str, Any]) -> str:
    shape = info.get("tensor_shape")
    dims = shape.get("dim") if isinstance(shape, Mapping) else None
    sizes = ["?" if dim.get("size") == "-1" else str(dim.get("size")) for dim in dims or () if isinstance(dim, Mapping)]
    unknown = isinstance(shape, Mapping) and shape.get("unknown_rank")
    return f"{str(info.get('dtype', '')).removeprefix('DT_').lower()}[{'…' if unknown else ','.join(sizes)}]"


def _shown(tensors: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in sorted(tensors.items())) or "none"
