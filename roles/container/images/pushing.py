"""``images.push``: an archive on each host, or on one of them, which shares it through a registry with the others."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.goals import OnlyStates
from hostwright.cli.opening import ask_password, members_of, open_fleet
from hostwright.cli.verbs import changes
from hostwright.cli.views.shared import warn
from hostwright.common.errors import AS_DESIRED, DIFFERS, HostError, InputError
from hostwright.common.quoting import sh
from hostwright.common.request import Request
from hostwright.common.userpaths import expanded
from hostwright.fleet import Fleet, Member, Members
from hostwright.plan.model import Resource
from hostwright.plan.observing import ask
from hostwright.standard.roles.container.images.archives.contents import read_contents
from hostwright.standard.roles.container.images.archives.directories import archive_of
from hostwright.standard.roles.container.images.archives.names import NoArchive
from hostwright.standard.roles.container.images.archives.parts import familiar
from hostwright.standard.roles.container.images.loaded import ImagesLoaded
from hostwright.standard.roles.container.images.registry import registry_at, serves_images
from hostwright.standard.roles.container.images.throughregistry import ImagesPulled, ImagesPushed, PushedImage

ROLE = "container"
VERB = "images.push"


@dataclass(frozen=True)
class _Push:
    """A call of the verb: what it brings, and how."""

    fleet: Fleet
    members: Members
    request: Request
    archive: Path  #: the file that hosts get
    given: str  #: as it was named
    loaded: ImagesLoaded
    again: str  #: its options, as they are typed

    def reach(self, members: Members, *states: Resource, at: str = "") -> int:
        """Bring hosts to these states; the exit status."""
        images = [tag for image in self.loaded.images for tag in image.tags]
        own = {"archive": self.given, "images": images, "registry": at}
        return changes.reach(
            VERB,
            OnlyStates(ROLE, states, {self.loaded.artifact.name: self.loaded.artifact}),
            self.fleet,
            members,
            replace(self.request, own=own),
            files={self.loaded.artifact.name: self.archive},
            again=self.again,
        )


def push(request: Request, archive: str, *, name: str = "", registry: bool = False) -> int:
    """``images.push``. The archive is read whole before any host is asked."""
    if not archive:
        raise InputError("name the archive: --archive FILE, from `docker save -o FILE NAME:TAG`", "--archive")
    try:
        name = name and familiar(name)
    except NoArchive as error:
        raise InputError(str(error), "--name") from error
    fleet = open_fleet(request)
    members = members_of(fleet, request)
    at = registry_of(members) if registry else ""
    path = expanded(archive)
    with archive_of(path) as file:
        loaded = ImagesLoaded.of(read_contents(file, name=name, shown=path))
        again = sh(" --archive %s", archive) + (sh(" --name %s", name) if name else "") + " --registry" * registry
        one = _Push(fleet, members, request, file, str(path), loaded, again)
        return _through(one, at) if at else one.reach(members, loaded)


def registry_of(members: Members) -> str:
    """The registry of all these hosts. Raises ``InputError`` where one has none, or another."""
    found: dict[str, list[str]] = {}
    for member in members:
        found.setdefault(registry_at(member), []).append(member.name)
    if "" in found:
        sentence = (
            f"{', '.join(found[''])} {'has' if len(found['']) == 1 else 'have'} no registry: add the role registry to "
            "hostwright_roles, say registry_at, run `invoke registry.trust`, and provision"
        )
        raise InputError(sentence, "--registry")
    if len(found) > 1:
        raise InputError(
            f"these hosts have several registries ({', '.join(sorted(found))}): push to each", "--registry"
        )
    return next(iter(found))


def _through(one: _Push, at: str) -> int:
    """One host gets the archive and puts it into the registry; the others fetch it there by its digests."""
    first = pusher_of(one.members)
    others = tuple(member for member in one.members if member.name != first.name)
    pushed = ImagesPushed(at, one.loaded.images)
    said = io.StringIO()
    if one.request.json:  # one document is printed: that of the other hosts, unless it does not come to that
        with redirect_stdout(said):
            status = one.reach(replace(one.members, chosen=(first,)), one.loaded, pushed, at=at)
    else:
        status = one.reach(replace(one.members, chosen=(first,)), one.loaded, pushed, at=at)
    if status == DIFFERS and others:
        warn(f"then {', '.join(member.name for member in others)} would fetch from {at} what they lack")
    if status != AS_DESIRED or not others:
        print(said.getvalue(), end="")
        return status
    state = ImagesPulled(at, _there(one, first, pushed), one.loaded.unpacked)
    return one.reach(replace(one.members, chosen=others), state, at=at)


def pusher_of(members: Members) -> Member:
    """The host that gets the archive: the registry's own where it has Docker, so that it goes over the network once."""
    able = [member for member in members if serves_images(member) and ROLE in {role.name for role in member.of_host}]
    return able[0] if able else next(iter(members))


def _there(one: _Push, first: Member, pushed: ImagesPushed) -> tuple[PushedImage, ...]:
    """What the registry has of the archive. Raises ``HostError`` where that is not all of it."""
    with Connections(ask_password(one.request)).connect(first) as shell:
        images = pushed.pushed(ask(shell, pushed.probes()))
    missing = {tag for image in one.loaded.images for tag in image.tags} - {image.name for image in images}
    if missing:
        sentence = f"the registry {pushed.at} has lost {', '.join(sorted(missing))} meanwhile: run this again"
        raise HostError(first.name, sentence)
    return images
