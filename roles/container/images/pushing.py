"""Implementation of ``images.push``: an archive is loaded on each host, or on one host that pushes to a registry."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Protocol, runtime_checkable

from hostwright.cli.verb import (
    Connections,
    Fleet,
    OnlyStates,
    Request,
    TargetHost,
    Targets,
    ask,
    ask_password,
    change,
    open_fleet,
    targets_of,
    warn,
)
from hostwright.resources import Facts, Probe, Resource
from hostwright.roles import AS_DESIRED, DIFFERS, Command, HostError, InputError, Secret, expanded
from hostwright.standard.roles.container.images.facts import read_images
from hostwright.standard.roles.container.images.loaded import ImagesLoaded, artifact_of
from hostwright.standard.roles.container.images.reference import familiar
from hostwright.standard.roles.container.images.throughregistry import ImagesPulled, ImagesPushed


@runtime_checkable
class ImageRegistry(Protocol):
    """Variables of a role that gives its host an image registry. A host has at most one such role."""

    @property
    def image_registry(self) -> str:
        """Name and port of the registry, such as ``reg01:5000``; empty without a registry."""

    @property
    def serves_images(self) -> bool:
        """Whether this host runs the registry."""


def registry_at(target: TargetHost) -> str:
    """Return name and port of the host's image registry; empty without a registry."""
    return next((v.image_registry for v in target.variables.values() if isinstance(v, ImageRegistry)), "")


def serves_images(target: TargetHost) -> bool:
    """Return whether the host runs an image registry."""
    return any(isinstance(v, ImageRegistry) and v.serves_images for v in target.variables.values())


ROLE = "container"
VERB = "images.push"


@dataclass(frozen=True)
class _Push:
    fleet: Fleet
    targets: Targets
    request: Request
    archive: Path
    loaded: ImagesLoaded
    again: Command  #: command (``invoke …``) with which the operator started the push

    def reach(self, targets: Targets, state: Resource, at: str = "") -> int:
        """Apply ``state`` to the hosts ``targets``; return the exit status. ``at``: registry to record in the run."""
        artifact, names = self.loaded.artifact, self.loaded.names
        goal = OnlyStates(ROLE, (state,), {artifact.name: artifact})
        request = replace(self.request, own={"archive": str(self.archive), "images": list(names), "registry": at})
        run = partial(self.fleet.reach, VERB, targets, goal, request, files={artifact.name: self.archive})
        return change(VERB, self.fleet, targets, request, run, goal=goal, again=self.again)

    def facts(self, target: TargetHost, probes: tuple[Probe, ...]) -> Facts:
        with Connections(self._password).connect(target) as shell:
            return ask(shell, probes)

    @cached_property
    def _password(self) -> Secret | None:
        return ask_password(self.request)


def push(request: Request, archive: str, *, name: str = "", registry: bool = False) -> int:
    """Run ``images.push`` with the archive at the path ``archive``. ``name``: comma-separated image names to set."""
    if not archive:
        raise InputError("missing; give an archive from `docker save -o FILE NAME:TAG`: --archive FILE", "--archive")
    names = tuple(dict.fromkeys(map(_name, name.split(",")))) if name else ()
    fleet = open_fleet(request)
    targets = targets_of(fleet, request)
    at = registry_of(targets) if registry else ""
    path = expanded(archive)
    loaded = ImagesLoaded(artifact_of(path), path.name, names)
    again = Command(VERB, archive=archive, name=",".join(names), registry=registry)
    one = _Push(fleet, targets, request, path, loaded, again)
    return _through(one, at) if at else one.reach(targets, loaded)


def _name(text: str) -> str:
    try:
        return familiar(text.strip())
    except ValueError as error:
        raise InputError(
            f"{text!r} is not a valid image name: {error}; give a name with a tag, such as house/tool:1.2", "--name"
        ) from error


def registry_of(targets: Targets) -> str:
    """Return the registry of ``targets``. Raises ``InputError`` if a host has none, or if registries differ."""
    found: dict[str, list[str]] = {}
    for target in targets:
        found.setdefault(registry_at(target), []).append(target.name)
    if "" in found:
        sentence = (
            f"{', '.join(found[''])} {'has' if len(found['']) == 1 else 'have'} no registry; add the role registry to"
            f" hostwright_roles, set registry_at, run {Command('registry.trust')}, and provision"
        )
        raise InputError(sentence, "--registry")
    if len(found) > 1:
        raise InputError(
            f"these hosts use several registries ({', '.join(sorted(found))}); push to the hosts of each "
            "registry in a separate run",
            "--registry",
        )
    return next(iter(found))


def _through(one: _Push, at: str) -> int:
    """Push the images from one host to the registry ``at``, from which the other hosts pull them by digest.

    With ``--json``, only the JSON document of the last step is printed.
    """
    first = pusher_of(one.targets)
    others = tuple(target for target in one.targets if target.name != first.name)
    status = AS_DESIRED
    printed = io.StringIO()
    for targets, state in _stages(one, first, others, at):
        printed = io.StringIO()
        with redirect_stdout(printed) if one.request.json else nullcontext():
            status = one.reach(targets, state, at)
        if status == DIFFERS and others:
            warn(
                f"after the push, these hosts would pull the images that they lack from the registry {at}: "
                f"{', '.join(target.name for target in others)}"
            )
        if status != AS_DESIRED:
            break
    print(printed.getvalue(), end="")
    return status


def _stages(
    one: _Push, first: TargetHost, others: tuple[TargetHost, ...], at: str
) -> Iterator[tuple[Targets, Resource]]:
    alone = replace(one.targets, chosen=(first,))
    yield alone, one.loaded
    facts = one.facts(first, one.loaded.probes())
    images = one.loaded.images(facts)
    pushed = ImagesPushed(at, images)
    yield alone, pushed
    if not others:
        return
    there = pushed.pushed(one.facts(first, pushed.probes()))
    if missing := {image.name for image in images} - {image.name for image in there}:
        sentence = f"the registry {at} lost {', '.join(sorted(missing))} during the run; run the command again"
        raise HostError(first.name, sentence)
    sizes = {image.id: image.size for image in read_images(facts).images}
    size = sum(sizes.get(id_, 0) for id_ in {image.id for image in images})
    yield replace(one.targets, chosen=others), ImagesPulled(at, there, size)


def pusher_of(targets: Targets) -> TargetHost:
    """Return the host that loads the archive and pushes the images.

    The result is the registry's host if this host has Docker, else the first host.
    """
    able = [target for target in targets if serves_images(target) and ROLE in {role.name for role in target.of_host}]
    return able[0] if able else next(iter(targets))
