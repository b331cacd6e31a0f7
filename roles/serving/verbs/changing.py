"""Implementation of the tasks ``serve.up``, ``.switch`` and ``.down``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from hostwright.cli.verb import (
    Connections,
    Fleet,
    OnlyStates,
    Request,
    agree,
    answered,
    ask_password,
    change,
    open_fleet,
    targets_of,
)
from hostwright.cli.verb import provision as provision_hosts
from hostwright.roles import AS_DESIRED, Command, InputError, Stack, expanded, suggestion
from hostwright.standard.roles.serving.models.directory import SavedModel, called_like_a_version, pack, read_model
from hostwright.standard.roles.serving.states.served import ModelBrought
from hostwright.standard.roles.serving.verbs.queries import signatures_differ
from hostwright.standard.roles.workspaces.declared.entries import NOBODY
from hostwright.standard.roles.workspaces.declared.images import server_for
from hostwright.standard.roles.workspaces.declared.workspace import Workspace
from hostwright.standard.roles.workspaces.verbs.changing import entry_of, say_what_stays, show_written
from hostwright.standard.roles.workspaces.verbs.edit import (
    alone,
    checked,
    declared_entry,
    edited,
    once_written,
    place,
    written,
)
from hostwright.standard.roles.workspaces.verbs.queries import declared_of

ROLE, ROLES = "serving", "workspaces,serving"


@dataclass(frozen=True, slots=True)
class Wish:
    """Options of the task ``serve.up``. An omitted option is empty or 0."""

    directory: str
    name: str
    version: int
    signature: str


@dataclass(frozen=True, slots=True)
class _Change:
    host: str
    name: str
    what: str
    back: Command | None = None  #: command that reverts the change; ``None`` if the change is a removal
    yes: bool = False


def up(request: Request, wish: Wish, options: Mapping[str, Any], *, provision: bool = True) -> int:
    """Run the task ``serve.up``. The model and the inventory are checked before the connection to the host."""
    if not wish.directory:
        raise InputError("missing; give the directory that tf.saved_model.save wrote: --model DIR", "--model")
    model = read_model(expanded(wish.directory), wish.version or None, wish.signature)
    name = wish.name or _name_of(model.folder)
    fleet = open_fleet(request)
    host, space = _host_of(fleet, request, name, new=True)
    version = _version_of(model, wish, declared_entry(fleet.path, host, name))
    (target,) = fleet.targets(host)

    def with_version() -> dict[str, Any]:
        entry = declared_entry(fleet.path, host, name)
        # The second check of ``version`` finds a concurrent change that used the same number.
        _version_of(model, Wish(wish.directory, name, version, wish.signature), entry)
        return _entry(entry, options, version, model, space, stack=target.stack)

    _, after = edited(fleet.path, host, name, with_version())
    checked(fleet.path, host, after)
    status = _bring(fleet, host, request, (name, version, model))
    if status:
        return status
    model_down = Command("serve.down", name=name)
    first = space is None
    back = model_down if first else model_down.also(version=version)
    change = _Change(host, name, f"version {version} of {name}", back)
    return _write(fleet, change, with_version, request, provision=provision)


def switch(request: Request, name: str, version: int, *, provision: bool = True) -> int:
    """Run the task ``serve.switch``. Without ``--force``, the new live version must accept the same requests."""
    fleet = open_fleet(request)
    host, space = _host_of(fleet, request, name)
    was_live = _known(fleet, host, name, version)["live"]
    if space is not None and not request.force and was_live != version:
        _comparable(fleet, host, request, space, version)
    what, back = (f"version {version} of {name} as the live one", Command("serve.switch", name=name, version=was_live))
    change = _Change(host, name, what, back)
    return _write(
        fleet, change, lambda: {**_known(fleet, host, name, version), "live": version}, request, provision=provision
    )


def down(request: Request, name: str, version: int, *, provision: bool = True) -> int:
    """Run the task ``serve.down`` for the model or, with ``version``, for one version that is not live."""
    fleet = open_fleet(request)
    host, _ = _host_of(fleet, request, name)

    def without() -> dict[str, Any] | None:
        if not version:
            return None
        entry = _known(fleet, host, name, version)
        if entry["live"] == version:
            raise InputError(
                f"version {version} of {name} is live; make another version live with"
                f" {Command('serve.switch', name=name, version='N')}, or omit --version to remove the model",
                "--version",
            )
        return {**entry, "versions": {number: file for number, file in entry["versions"].items() if number != version}}

    what = f"version {version} of {name}" if version else name
    if provision:
        without()  # ``without`` raises errors about the version. They must precede the request for confirmation.
        end = f"removes {what} from {host}"
        parts = [f"{end}: requests for it will fail"]
        agree(f"`serve.down` {end}", parts, 1, yes=request.yes, as_json=request.json)
    change = _Change(host, name, what, yes=provision)
    return _write(fleet, change, without, request, provision=provision)


def _name_of(folder: Path) -> str:
    absolute = folder.absolute()
    return (absolute.parent if called_like_a_version(absolute) else absolute).name.lower().replace("_", "-")


def _host_of(fleet: Fleet, request: Request, name: str, *, new: bool = False) -> tuple[str, Workspace | None]:
    """Return the host of the model ``name``, and the model's declaration in the inventory.

    With ``new``, the declaration may be missing (``None``). Raises ``InputError`` unless exactly one host matches.
    """
    if not name:
        raise InputError("missing; name the model, such as --name mnist", "--name")
    every = [host.name for host in fleet.select(request.hosts or "all", usable=False)]
    targets = [target for host in every for target in fleet.targets(host)]
    held = {
        target.name: space
        for target in targets
        for space in declared_of(target)
        if space.name == name and space.entry.kind == "serving"
    }
    able = [target.name for target in targets if ROLE in {role.name for role in target.roles}]
    chosen = list(held) or (able if new else [])
    if request.hosts and new and len(every) == 1:
        chosen = every
    if not chosen:
        if new:
            sentence = "no host has the role serving; add workspaces and serving to a host's hostwright_roles"
            raise InputError(sentence, "hostwright_roles")
        known = sorted({space.name for target in targets for space in declared_of(target) if space.entry.versions})
        raise InputError(f"no model {name!r}; {suggestion(name, known)}", "--name")
    if len(chosen) > 1:
        raise InputError(f"several hosts match ({', '.join(chosen)}); choose one with --host", "--host")
    (host,) = chosen
    if host not in able:
        raise InputError(
            f"{host} does not have the role serving; add it to the host's list, such as "
            "hostwright_roles: [base, driver, …, container, workspaces, serving]",
            "hostwright_roles",
        )
    return host, held.get(host)


def _version_of(model: SavedModel, wish: Wish, entry: Mapping[str, Any] | None) -> int:
    """Return the number of the new version. Raises ``InputError`` if ``entry`` has this number for other files."""
    known: dict[int, str] = dict((entry or {}).get("versions") or {})
    same = next((number for number, digest in known.items() if digest == model.digest), None)
    version = wish.version or model.number or same or max(known, default=0) + 1
    if known.get(version, model.digest) != model.digest:
        raise InputError(
            f"the inventory has version {version} with other files, and the files of a version never change; "
            f"give another number, such as --version {max(known) + 1}",
            "--version",
        )
    return version


def _entry(
    entry: Mapping[str, Any] | None,
    options: Mapping[str, Any],
    version: int,
    model: SavedModel,
    space: Workspace | None,
    *,
    stack: Stack,
) -> dict[str, Any]:
    if entry is not None and (space is None or entry.get("kind") != "serving"):
        raise InputError(
            f"the name belongs to a workspace of the kind {entry.get('kind')}; give the model another name", "--name"
        )
    given = entry_of(options)
    old = dict(entry or {})
    gpus = given.get("gpus", old.get("gpus"))
    image = given.get("image") or server_for(stack, old.get("image", ""), gpus=bool(gpus))
    merged = {"user": NOBODY, "kind": "serving", "image": "", **old, **given} | {"image": image}
    versions = {**(old.get("versions") or {}), version: model.digest}
    return {**merged, "versions": dict(sorted(versions.items())), "live": old.get("live", version)}


def _known(fleet: Fleet, host: str, name: str, version: int) -> dict[str, Any]:
    """Raise ``InputError`` if the model's inventory entry is missing or lacks ``version``. Returns the entry."""
    entry = declared_entry(fleet.path, host, name)
    if entry is None:
        raise InputError(
            f"{name} is not declared in this file; change the file that declares it", str(place(fleet.path))
        )
    versions = entry.get("versions") or {}
    if version not in versions:
        known = ", ".join(map(str, sorted(versions)))
        what = f"no version {version}" if version else "missing"
        raise InputError(f"{what}; choose a version of {name}: {known}", "--version")
    return entry


def _bring(fleet: Fleet, host: str, request: Request, what: tuple[str, int, SavedModel]) -> int:
    name, version, model = what
    targets = targets_of(fleet, replace(request, hosts=host))
    with tempfile.TemporaryDirectory(prefix="hostwright-model-") as folder:
        archive = Path(folder) / "model.tar"
        artifact = pack(model, name, version, archive)
        goal = OnlyStates(ROLE, (ModelBrought(name, version, model.digest, artifact),), {artifact.name: artifact})
        request = replace(request, own={"model": str(model.folder), "name": name, "version": version})
        reach = partial(fleet.reach, "serve.up", targets, goal, request, files={artifact.name: archive})
        return change("serve.up", fleet, targets, request, reach, goal=goal)


def _comparable(fleet: Fleet, host: str, request: Request, space: Workspace, version: int) -> None:
    """Raise ``InputError`` if ``version`` would reject requests that clients of the live version send."""
    (target,) = fleet.targets(host)
    with Connections(ask_password(request)).connect(target) as shell:
        problem = signatures_differ(shell, space, version)
    if problem:
        raise InputError(f"{problem}; pass --force to make it live", "--version")


def _write(
    fleet: Fleet, change: _Change, entry: Callable[[], Mapping[str, Any] | None], request: Request, *, provision: bool
) -> int:
    file = place(fleet.path)
    with alone(fleet.path):
        before, after = edited(fleet.path, change.host, change.name, entry())
        checked(fleet.path, change.host, after)
        written(fleet.path, before, after)
    with once_written(fleet.path):
        show_written(file, before, after, quiet=request.json)
        if not provision:
            return AS_DESIRED
        chosen = replace(request, hosts=change.host, roles=ROLES, force=False, yes=answered(change.yes))
        status = provision_hosts(chosen)
        if status != AS_DESIRED:
            say_what_stays(file, change.what, change.back, Command("provision", hosts=change.host, roles=ROLES))
        return status
