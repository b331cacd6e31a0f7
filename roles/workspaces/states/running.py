"""Desired state of one workspace: its container runs as defined."""

from __future__ import annotations

import difflib
import hashlib
import json
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hostwright.resources import ABSENT, NO_IDENTITY, Change, Deferred, Facts, Planned, Probe, Refusal, Resource, Step
from hostwright.roles import Command, count, sh, sh_file
from hostwright.standard.roles.container.images.reference import absent_because
from hostwright.standard.roles.container.running import LOCAL_DOCKER
from hostwright.standard.roles.workspaces.declared.workspace import Workspace
from hostwright.standard.roles.workspaces.declared.zones import zone_of
from hostwright.standard.roles.workspaces.states.access import CLOSED
from hostwright.standard.roles.workspaces.states.arguments import (
    Placed,
    bridge_of,
    docker_arguments,
    interpreter_of,
    network_of,
)
from hostwright.standard.roles.workspaces.states.cards import card_probes, cards_of_host, give_cards
from hostwright.standard.roles.workspaces.states.facts import (
    NEW,
    OLD,
    PREFIX,
    WORKSPACES_PROBE,
    SpaceContainer,
    WorkspaceFacts,
    read_workspaces,
)
from hostwright.standard.roles.workspaces.states.owner import owner_of, owner_probes
from hostwright.standard.roles.workspaces.states.undeclared import ENDS_WORK, Undeclared, failing

UNABLE = "not possible"
_LINE_CHARACTERS = 160  #: maximum number of characters of a line in the printed diff of a definition
#: seconds to wait for the response of a started program, such as Jupyter on a busy disk
PATIENCE_S = 120
#: seconds to wait for the response of a model server, which first loads gigabytes of models
LOADING_S = 600


def digest(definition: str) -> str:
    """Return a digest of ``definition`` for the container's label."""
    return hashlib.sha256(definition.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class WorkspaceRuns(Resource):
    """The container of the workspace ``name`` exists as ``definition`` requires, and responds on its port."""

    name: str
    definition: str  #: text of the definition. A change of the text replaces the container.
    files: tuple[tuple[str, str, str], ...]  #: name, mode and text of each file of root for the container
    workspace: Workspace = field(metadata=NO_IDENTITY)
    #: all workspaces of the host, including this one
    siblings: tuple[Workspace, ...] = field(metadata=NO_IDENTITY)
    built: str = ""  #: name of an image built on the host; empty: the image of the inventory
    force: bool = field(default=False, metadata=NO_IDENTITY)  #: whether a change may end a user's work
    #: GPUs that other roles of the host reserve, each with the name of the role
    reserved: tuple[tuple[str, str], ...] = field(default=(), metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        return (WORKSPACES_PROBE, *card_probes(self.siblings), *owner_probes(self.workspace))

    @property
    def what(self) -> str:
        """Name of the workspace in plans."""
        return f"workspace {self.name}"

    def plan(self, facts: Facts) -> Planned | None:
        found = read_workspaces(facts)
        held = found.container(self.name)
        if found.docker:
            return Deferred(self.what, found.trouble, self._want(), "Docker answers")
        placed = self._placed(found, held, facts)
        if not isinstance(placed, Placed):
            return placed
        if held is None:
            warnings = (*self._gone(found), *self._new_key(found))
            return self._taken(found) or replace(self._created(placed, ABSENT), warnings=warnings)
        if held.definition != placed.definition or held.uuids != placed.uuids:
            have = "another definition" if held.definition != placed.definition else f"GPU {held.gpus}"
            diff = _difference(found.definitions.get(self.name), self)
            made = self._created(placed, have, diff)
            made = replace(made, warnings=tuple(self._new_key(found)))
            return self._in_use(held, "its definition changed") or (
                replace(made, disturbs=ENDS_WORK) if held.at_work else made
            )
        if held.half_started and self.name not in found.queued:
            return self._taken(found) or self._created(placed, _ended(held))
        return self._kept(found, held)

    def _kept(self, found: WorkspaceFacts, held: SpaceContainer) -> Planned | None:
        off = not held.over and network_of(self.workspace.owner) not in held.networks.split()
        back, note = (self._network() + self._connect(), ", off its network") if off else ("", "")
        if self.workspace.entry.kind == "batch":
            if held.state == "created" and self.name not in found.queued:
                return self._change(f"not in the queue{note}", "queued", back + self._start() + self._finish())
        elif not held.running or found.unsteady(held):
            script = back + self._start() + self._finish()
            return self._taken(found) or self._change(f"{_ended(held)}{note}", "running", script)
        elif found.outdated(held):
            end = sh(LOCAL_DOCKER + " stop --time 10 %s >/dev/null 2>&1 || :\n", f"{PREFIX}{self.name}")
            have = f"its libraries are of driver {held.libraries}"
            due = self._change(have, f"started again with those of {found.driver}", back + end + self._start())
            return self._in_use(held, have) or (replace(due, disturbs=ENDS_WORK) if held.at_work else due)
        if off:
            port = f" with port {self.workspace.port}" if self.workspace.port else ""
            return self._taken(found) or self._change("off its network", f"on it again{port}; what runs goes on", back)
        beside = [end for end in (NEW, OLD) if found.container(self.name, end)]
        if beside or not found.definitions.get(self.name):
            return self._change("a change of it was cut off", "at its end", self._finish())
        return None

    def _change(self, have: str, want: str, script: str, diff: str = "") -> Change:
        """Return a change of this workspace. A failure of this change does not end the changes of other workspaces."""
        return Change(self.what, have, want, (_step(failing(self.what) + script),), diff=diff, alone=True)

    def _placed(self, found: WorkspaceFacts, held: SpaceContainer | None, facts: Facts) -> Placed | Planned:
        entry = self.workspace.entry
        owner = owner_of(self.workspace, facts)
        if isinstance(owner, str):
            return Refusal(
                self.what, UNABLE, self._want(), "workspace-user", f"workspace {self.name}: {owner}", alone=True
            )
        uuids: tuple[str, ...] = ()
        if entry.gpus:
            cards = cards_of_host(self.siblings, facts)
            if cards is None:
                return Deferred(self.what, "nvidia-smi does not answer", self._want(), "the driver answers")
            given = give_cards(self.siblings, found, cards, dict(self.reserved))[self.name]
            if given.refused:
                return Refusal(self.what, UNABLE, self._want(), "workspace-gpu", given.refused, alone=True)
            uuids = given.uuids
            if keeper := self._keeper(found, uuids):
                return Refusal(self.what, UNABLE, self._want(), "workspace-gpu", keeper, alone=True)
        return self._with_image(found, held, owner, uuids)

    def _with_image(
        self, found: WorkspaceFacts, held: SpaceContainer | None, owner: tuple[int, int], uuids: tuple[str, ...]
    ) -> Placed | Planned:
        entry = self.workspace.entry
        image = image_of(self._reference, found, held) or (self._reference if entry.pull and not self.built else "")
        if not image and self.built:
            return Deferred(self.what, f"no image {self.built}", self._want(), "the image is built")
        if not image:
            return Refusal(self.what, UNABLE, self._want(), "workspace-image", _no_image(self.workspace), alone=True)
        return Placed(*owner, uuids, image, self._reference, digest(self.definition))

    def _keeper(self, found: WorkspaceFacts, uuids: tuple[str, ...]) -> str:
        """Return the reason for a refusal if somebody works in an undeclared workspace with one of the GPUs ``uuids``;
        else empty.
        """
        declared = {space.name for space in self.siblings}
        for held in found.containers:
            if held.workspace not in declared and held.at_work and not self.force and set(held.uuids) & set(uuids):
                return (
                    f"workspace {self.name} wants GPU {', '.join(self.workspace.entry.gpus)}, which {held.at_work}"
                    " still uses, although it is no longer declared; wait until nobody works in it, or pass --force"
                )
        return ""

    @property
    def _reference(self) -> str:
        return self.built or self.workspace.entry.image

    def _created(self, placed: Placed, have: str, diff: str = "") -> Change:
        space = self.workspace
        script = sh_file(
            __file__, "sh/create.sh", name=self.name, user=space.owner, uid=placed.uid, gid=placed.gid,
            groups=space.user.groups,
            directory=space.directory, state=space.state, image=placed.image, kind=space.entry.kind,
            reference=placed.reference, interpreter=interpreter_of(space.entry),
            zone=zone_of(space.entry.environment.get("TZ", "")),
            pull="yes" if space.entry.pull else "", files=[part for file in self.files for part in file],
            sources=[mount.split(":")[0] for mount in space.entry.mounts],
            arguments=docker_arguments(space, placed),
        )  # fmt: skip
        script = self._network() + script + self._start() + self._finish()
        return self._change(have, self._want(), script, diff)

    def _gone(self, found: WorkspaceFacts) -> Iterator[str]:
        if found.definitions.get(self.name):
            yield (
                f"workspace {self.name} existed on this host before, but its container is missing: it was removed, or"
                " Docker now uses another storage driver (docker info: Storage Driver), which does not show old"
                " containers"
            )

    def _new_key(self, found: WorkspaceFacts) -> Iterator[str]:
        """Yield a warning if the user's SSH container will get a new host key.

        The key stays the same until the container's user or its root-owned files change.
        """
        before = found.definitions.get(self.name, {})
        if self.workspace.entry.kind == "ssh" and before.get("user") != self.workspace.owner:
            yield (
                f"workspace {self.name} gets a new SSH host key; {Command('workspace.url', name=self.name)} shows its"
                " fingerprint, and the fix if ssh has an old key"
            )

    def _network(self) -> str:
        owner = self.workspace.owner
        return sh_file(
            __file__,
            "sh/network/make.sh",
            user=owner,
            network=network_of(owner),
            bridge=bridge_of(owner),
            closed=CLOSED,
        )

    def _connect(self) -> str:
        return sh_file(__file__, "sh/network/connect.sh", name=self.name, network=network_of(self.workspace.owner))

    def _start(self) -> str:
        space = self.workspace
        if space.entry.kind == "batch":
            return sh_file(__file__, "sh/queue.sh", name=self.name)
        path = posixpath.join(space.path, "api") if space.entry.kind == "jupyter" else space.path
        models = f"{space.state}/models" if space.entry.kind == "serving" else ""
        return sh_file(
            __file__, "sh/start.sh", name=self.name, kind=space.entry.kind, port=space.port, path=path,
            patience=LOADING_S if models else PATIENCE_S, models=models,
        )  # fmt: skip

    def _finish(self) -> str:
        state = self.workspace.state
        return sh_file(__file__, "sh/finish.sh", name=self.name, state=state, definition=self.definition)

    def _want(self) -> str:
        entry = self.workspace.entry
        gpus = f"GPU {', '.join(entry.gpus)}" if entry.gpus else "no GPU"
        port = f"port {self.workspace.port}, " if self.workspace.port else ""
        return f"{entry.kind} of {entry.user} with {gpus}, {port}{entry.image}"

    def _taken(self, found: WorkspaceFacts) -> Refusal | None:
        port = self.workspace.port
        holding = (held for held in found.containers if held.kept_up and held.connected and held.port == str(port))
        holder = next(holding, None)
        if port not in found.ports or holder is not None:
            return None
        sentence = (
            f"another program on the host listens on port {port} of workspace {self.name} (find it with "
            "`ss -ltnp`); give the workspace another port (port: …)"
        )
        return Refusal(self.what, UNABLE, self._want(), "workspace-port", sentence, alone=True)

    def _in_use(self, held: SpaceContainer, why: str) -> Refusal | None:
        if self.force or not held.at_work:
            return None
        sentence = f"{held.at_work} would be ended: {why}; wait until nobody works in it, or pass --force"
        return Refusal(self.what, UNABLE, self._want(), "workspace-in-use", sentence, alone=True)

    def users(self, facts: Facts) -> tuple[str, ...]:
        """Return a description of the user's work that a replacement of the container would end; else nothing."""
        held = read_workspaces(facts).container(self.name)
        return (held.at_work,) if held is not None and held.at_work else ()

    def notes(self, facts: Facts) -> tuple[str, ...]:
        """Return warnings about limits, and a note if the image's tag names another image than the container has."""
        cautions = self.workspace.entry.cautions(self.name)
        found = read_workspaces(facts)
        held = found.container(self.name)
        reference = self._reference
        if held is None or held.reference != reference or found.image(reference) in ("", held.image):
            return cautions
        return (
            *cautions,
            f"workspace {self.name} keeps the image that {reference} named at its creation ({held.image[7:19]}); on"
            " this host the name now belongs to another image",
        )

    def removal(self) -> tuple[Resource, ...]:
        return (Undeclared(force=self.force, removes=True),)


def image_of(reference: str, found: WorkspaceFacts, held: SpaceContainer | None) -> str:
    """Return the ID of the image for a workspace's container; empty if the host lacks the image ``reference``.

    The container ``held`` keeps its image even if the tag moves.
    """
    if held is not None and held.reference == reference and held.image in found.images:
        return held.image
    return found.image(reference)


def _no_image(space: Workspace) -> str:
    return (
        f"workspace {space.name} wants the image {space.entry.image}: "
        f"{absent_because(space.entry.image)}, or let the host pull it (pull: true)"
    )


def _ended(held: SpaceContainer) -> str:
    why = ", killed for lack of memory" if held.killed else f", {held.error}" if held.error else ""
    if held.running:
        return f"its program ended, and Docker just restarted it ({count(held.restarts, 'time')} so far)"
    return f"{held.state} (status {held.code}{why})"


def _difference(before: object, runs: WorkspaceRuns) -> str:
    old = [_bounded(line) for line in json.dumps(before or {}, indent=2).splitlines()]
    new = [_bounded(line) for line in json.dumps(json.loads(runs.definition), indent=2).splitlines()]
    return "\n".join(difflib.unified_diff(old, new, "before", "after", lineterm="", n=0))


def _bounded(line: str) -> str:
    """Shorten a long ``line``, and add its digest, so that any change is visible."""
    if len(line) <= _LINE_CHARACTERS:
        return line
    return f"{line[:_LINE_CHARACTERS]}… ({len(line):,} characters, SHA-256 {digest(line)})"


def _step(script: str) -> Step:
    return Step(script, timeout_s=900)
