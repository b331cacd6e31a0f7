"""``images.push``: an archive on each host, or on one of them, which shares it through a registry with the others."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

from hostwright.cli.verb import (
    ChangeOptions,
    ConnectionOptions,
    Connections,
    Fleet,
    Member,
    Members,
    OnlyStates,
    Selection,
    ask,
    ask_password,
    changes,
    members_of,
    open_fleet,
    warn,
)
from hostwright.resources import Resource
from hostwright.roles import AS_DESIRED, DIFFERS, HostError, InputError, expanded, sh
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
    connection: ConnectionOptions
    change: ChangeOptions
    archive: Path  #: the file that hosts get
    given: str  #: as it was named
    loaded: ImagesLoaded
    check: bool
    again: str  #: its options, as they are typed
    as_json: bool

    def reach(self, members: Members, *states: Resource, at: str = "") -> int:
        """Bring hosts to these states; the exit status."""
        names = {"registry": at} if at else {}
        return changes.reach(
            VERB,
            OnlyStates(ROLE, states, {self.loaded.artifact.name: self.loaded.artifact}),
            self.fleet,
            members,
            connection=self.connection,
            change=self.change,
            files={self.loaded.artifact.name: self.archive},
            options={
                "archive": self.given,
                "images": [tag for i in self.loaded.images for tag in i.tags],
                **names,
            },
            check=self.check,
            again=self.again,
            as_json=self.as_json,
        )


def push(
    selection: Selection,
    connection: ConnectionOptions,
    change: ChangeOptions,
    archive: str,
    *,
    name: str = "",
    registry: bool = False,
    check: bool = False,
    as_json: bool = False,
) -> int:
    """``images.push``. The archive is read whole before any host is asked."""
    if not archive:
        raise InputError("name the archive: --archive FILE, from `docker save -o FILE NAME:TAG`", "--archive")
    try:
        name = name and familiar(name)
    except NoArchive as error:
        raise InputError(str(error), "--name") from error
    fleet = open_fleet(selection, connection)
    members = members_of(fleet, selection)
    at = registry_of(members) if registry else ""
    path = expanded(archive)
    with archive_of(path) as file:
        loaded = ImagesLoaded.of(read_contents(file, name=name, shown=path))
        again = sh(" --archive %s", archive) + (sh(" --name %s", name) if name else "") + " --registry" * registry
        one = _Push(fleet, members, connection, change, file, str(path), loaded, check, again, as_json)
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
    if one.as_json:  # one document is printed: that of the other hosts, unless it does not come to that
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
    with Connections(ask_password(one.connection)).connect(first) as shell:
        images = pushed.pushed(ask(shell, pushed.probes()))
    missing = {tag for image in one.loaded.images for tag in image.tags} - {image.name for image in images}
    if missing:
        sentence = f"the registry {pushed.at} has lost {', '.join(sorted(missing))} meanwhile: run this again"
        raise HostError(first.name, sentence)
    return images
