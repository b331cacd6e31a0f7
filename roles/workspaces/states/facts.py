"""What a host has of workspaces: containers, images, networks, ports in use. One question, the same to all hosts."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from hostwright.resources import Facts, Probe
from hostwright.roles import sh_file, whole
from hostwright.standard.roles.container.images.reference import read_image_name
from hostwright.standard.roles.container.running import CHILDREN_SH, processes
from hostwright.standard.roles.workspaces.declared.forms import UNATTENDED
from hostwright.standard.roles.workspaces.declared.workspace import BATCH, STATE

LABEL = "hostwright.workspace"  #: of a container: the name of its workspace
PREFIX = "workspace-"  #: of a container's name
NEW, OLD = ".new", ".old"  #: ends of a container's name while another replaces it

#: The fields of a container, each with where ``docker inspect`` has it; labels by their own names.
_FIELDS = {
    "name": ".Name", "id": ".Id", "image": ".Image", "state": ".State.Status", "pid": ".State.Pid",
    "code": ".State.ExitCode", "killed": ".State.OOMKilled", "error": ".State.Error", "ended": ".State.FinishedAt",
    "restarts": ".RestartCount", "started": ".State.StartedAt",
}  # fmt: skip
_LABELS = ("workspace", "user", "kind", "definition", "asked", "gpus", "share", "port", "reference")
#: what Docker keeps as a container's error where a program of the runtime failed, and at the next start of it
_HALF_STARTED = ("id already in use", "runtime create failed", "failed to create shim", "failed to create task")
_FORMAT = ",".join(
    [f'"{name}":{{{{json {place}}}}}' for name, place in _FIELDS.items()]
    + [f'"{name}":{{{{json (index .Config.Labels "hostwright.{name}")}}}}' for name in _LABELS]
    # the names alone: what Docker knows of each is half a kilobyte
    + ['"networks":"{{range $name, $end := .NetworkSettings.Networks}}{{$name}} {{end}}"']
)

WORKSPACES_PROBE = Probe(
    CHILDREN_SH + sh_file(__file__, "sh/facts.sh", state=STATE, batch=BATCH, format=f"container {{{_FORMAT}}}"),
    root=True,
    cap_bytes=1024 * 1024,  # 1,000 containers and as many images
)


@dataclass(frozen=True, slots=True)
class SpaceContainer:
    """A container of a workspace, as Docker has it. All of it is text of the host."""

    name: str
    id: str
    image: str  #: the image's ID (``sha256:…``), whatever names lead to it now
    state: str  #: Docker's word: ``running``, ``exited``, ``created``, …
    pid: int
    code: int
    killed: bool  #: by the kernel, for want of memory
    error: str
    ended: str
    workspace: str
    user: str
    kind: str
    definition: str  #: the digest of the definition that it was made from
    asked: str  #: the GPUs as the inventory named them then
    gpus: str  #: their UUIDs
    share: str
    port: str
    reference: str  #: the image as the inventory named it then
    networks: str  #: the names of the networks that it is in, or will be in when it is started
    restarts: int = 0  #: how often Docker has started it again since somebody started it
    started: str = ""  #: when it last was, in UTC (RFC 3339)
    children: int = 0  #: processes that its first one started
    libraries: str = ""  #: the version of the driver whose libraries it got at its start; empty where it got none

    @property
    def running(self) -> bool:
        """Whether Docker says that it runs."""
        return self.state == "running"

    @property
    def kept_up(self) -> bool:
        """Whether it runs, or Docker is just starting it again: its port may be its own either way."""
        return self.state in ("running", "restarting")

    @property
    def connected(self) -> bool:
        """Whether it is in a network, or will be when it is started: without one, nobody reaches it."""
        return self.networks.split() not in ([], ["none"])

    @property
    def over(self) -> bool:
        """Whether it is a batch run that has ended, which is never started again."""
        return self.kind == "batch" and self.state in ("exited", "dead")

    @property
    def half_started(self) -> bool:
        """Whether its start failed in the runtime: Docker then calls its ID one in use at every further start."""
        never = self.state == "created" or (self.state == "exited" and self.kind != "batch")
        return never and any(sign in self.error for sign in _HALF_STARTED)

    @property
    def uuids(self) -> tuple[str, ...]:
        """The UUIDs of its GPUs."""
        return tuple(filter(None, self.gpus.split(",")))

    @property
    def at_work(self) -> str:
        """Whose work would end with it, for a sentence; empty where nobody works in it."""
        if not self.running or self.kind in UNATTENDED or (self.kind != "batch" and not self.children):
            return ""
        what = "a batch run" if self.kind == "batch" else processes(self.children)
        return f"workspace {self.workspace} of {self.user} ({what})"


_KIND = TypeAdapter(SpaceContainer)


def trouble_with(docker: str) -> str:
    """What is wrong with a Docker that is ``absent`` or ``silent``, and where to look; empty for one that answered."""
    if docker == "silent":
        return "Docker does not answer: systemctl status docker, journalctl -u docker on the host say why"
    return "Docker is not installed" if docker else ""


@dataclass(frozen=True, slots=True)
class WorkspaceFacts:
    """The answer of a host."""

    docker: str = ""  #: ``absent`` or ``silent``; empty where Docker answered
    containers: tuple[SpaceContainer, ...] = ()
    images: dict[str, str] = field(default_factory=dict)  #: the ID of each image, by its names
    networks: tuple[str, ...] = ()
    driver: str = ""  #: the version of the driver, of its module and its libraries; empty where they do not agree
    lately: str = ""  #: some seconds ago, as the host's clock has it, in UTC (RFC 3339)
    queued: frozenset[str] = frozenset()  #: batch workspaces that wait for their turn, or have it
    waits: dict[str, str] = field(default_factory=dict)  #: what those wait for that do, or why Docker did not start one
    ports: frozenset[int] = frozenset()  #: in use, whoever listens
    definitions: dict[str, dict[str, Any]] = field(
        default_factory=dict
    )  #: of root's files, by workspace; empty where there is none yet

    @property
    def trouble(self) -> str:
        """What is wrong with Docker, and where to look; empty where it answered."""
        return trouble_with(self.docker)

    def image(self, name: str) -> str:
        """The ID of the image that a name leads to, however the name is written; empty where the host has none."""
        return self.images.get(read_image_name(name).shown, "")

    def unsteady(self, held: SpaceContainer) -> bool:
        """Whether a container runs only since Docker started it again a moment ago: its program may well end again."""
        return held.running and held.restarts > 0 and bool(self.lately) and held.started >= self.lately

    def outdated(self, held: SpaceContainer) -> bool:
        """Whether a container runs with another driver's libraries: no program in it reaches a GPU any more."""
        return held.running and bool(self.driver and held.libraries) and held.libraries != self.driver

    def container(self, workspace: str, end: str = "") -> SpaceContainer | None:
        """The container of a workspace, or the one beside it whose name ends so."""
        name = f"/{PREFIX}{workspace}{end}"
        return next((held for held in self.containers if held.name == name and held.workspace == workspace), None)


def read_workspaces(facts: Facts) -> WorkspaceFacts:
    """The answer to ``WORKSPACES_PROBE``. One that is cut off counts as Docker's silence."""
    answer = facts[WORKSPACES_PROBE]
    lines = [line.partition(" ")[::2] for line in answer.text.splitlines()]
    complete = answer.ok and not answer.truncated and lines[-1:] == [("end", "")]
    docker = [rest for kind, rest in lines if kind == "docker"]
    children = dict(_numbers(rest) for kind, rest in lines if kind == "children")
    killed = {whole(rest) for kind, rest in lines if kind == "killed"}
    libraries = {
        whole(pid): version for kind, rest in lines if kind == "libraries" for pid, _, version in [rest.partition(" ")]
    }
    rows = [_object(rest) for kind, rest in lines if kind == "container"]
    containers = (_held(row, children) for row in rows if row)
    return WorkspaceFacts(
        docker="absent" if "absent" in docker else "silent" if docker or not complete else "",
        containers=tuple(
            replace(held, killed=held.killed or held.pid in killed, libraries=libraries.get(held.pid, ""))
            for held in containers
            if held is not None
        ),
        images=_images(rest for kind, rest in lines if kind == "image"),
        networks=tuple(rest for kind, rest in lines if kind == "network"),
        driver=next((rest for kind, rest in lines if kind == "driver"), ""),
        lately=next((rest for kind, rest in lines if kind == "lately"), ""),
        queued=frozenset(rest for kind, rest in lines if kind == "batch"),
        waits={name: why for kind, rest in lines if kind == "waits" for name, _, why in [rest.partition(" ")]},
        ports=frozenset(
            port for kind, rest in lines if kind == "listen" and (port := whole(rest.rpartition(":")[2])) is not None
        ),
        definitions={
            name: _object(text)
            for kind, rest in lines
            if kind == "definition"
            for name, _, text in [rest.partition(" ")]
        },
    )


def _numbers(text: str) -> tuple[int, int]:
    first, _, second = text.partition(" ")
    numbers = whole(first), whole(second)
    return (0, 0) if numbers[0] is None or numbers[1] is None else (numbers[0], numbers[1])


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _held(row: dict[str, Any], children: dict[int, int]) -> SpaceContainer | None:
    pid = row.get("pid")
    try:
        return _KIND.validate_python({**row, "children": children.get(pid, 0) if isinstance(pid, int) and pid else 0})
    except ValidationError:
        return None


def _images(rows: Any) -> dict[str, str]:
    images: dict[str, str] = {}
    for row in rows:
        words = row.split()
        if len(words) == 3:
            ident, *names = words
            images[ident] = ident
            images.update({name: ident for name in names if "<none>" not in name})
    return images
