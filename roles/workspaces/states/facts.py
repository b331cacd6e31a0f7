"""State of the workspaces on a host (containers, images, networks, used ports), from one probe."""

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

LABEL = "hostwright.workspace"  #: name of the container label with the workspace's name
PREFIX = "workspace-"  #: prefix of the names of workspaces' containers
NEW, OLD = ".new", ".old"  #: suffixes of container names during the replacement of a container

#: field of ``SpaceContainer`` → path of the value in the output of ``docker inspect``
_FIELDS = {
    "name": ".Name", "id": ".Id", "image": ".Image", "state": ".State.Status", "pid": ".State.Pid",
    "code": ".State.ExitCode", "killed": ".State.OOMKilled", "error": ".State.Error", "ended": ".State.FinishedAt",
    "restarts": ".RestartCount", "started": ".State.StartedAt",
}  # fmt: skip
_LABELS = ("workspace", "user", "kind", "definition", "asked", "gpus", "share", "port", "reference")
#: texts of Docker's errors at each start of a container after a failed start
_HALF_STARTED = ("id already in use", "runtime create failed", "failed to create shim", "failed to create task")
_FORMAT = ",".join(
    [f'"{name}":{{{{json {place}}}}}' for name, place in _FIELDS.items()]
    + [f'"{name}":{{{{json (index .Config.Labels "hostwright.{name}")}}}}' for name in _LABELS]
    # The template prints only names, because Docker's data for a network has half a kilobyte.
    + ['"networks":"{{range $name, $end := .NetworkSettings.Networks}}{{$name}} {{end}}"']
)

WORKSPACES_PROBE = Probe(
    CHILDREN_SH + sh_file(__file__, "sh/facts.sh", state=STATE, batch=BATCH, format=f"container {{{_FORMAT}}}"),
    root=True,
    cap_bytes=1024 * 1024,  # this limit suffices for 1,000 containers and 1,000 images
)


@dataclass(frozen=True, slots=True)
class SpaceContainer:
    """Docker container of a workspace. All values come from the host unchecked."""

    name: str
    id: str
    image: str
    state: str
    pid: int
    code: int
    killed: bool  #: whether the kernel killed a process of the container for lack of memory
    error: str
    ended: str
    workspace: str
    user: str
    kind: str
    definition: str  #: digest of the workspace's definition at the container's creation
    asked: str  #: GPUs that the inventory declared at the container's creation
    gpus: str  #: UUIDs of the container's GPUs
    share: str
    port: str
    reference: str  #: image reference in the inventory at the container's creation
    networks: str  #: names of the container's networks
    restarts: int = 0  #: number of restarts by Docker since the last manual start
    started: str = ""  #: time of the container's last start, UTC (RFC 3339)
    children: int = 0  #: number of child processes of the container's first process
    #: driver version of the libraries that Docker mounted at the container's start; empty: none
    libraries: str = ""

    @property
    def running(self) -> bool:
        """Whether the container is running."""
        return self.state == "running"

    @property
    def kept_up(self) -> bool:
        """Whether the container runs or is restarting, so that its port may be in use."""
        return self.state in ("running", "restarting")

    @property
    def connected(self) -> bool:
        """Whether the container is on a Docker network, or joins one at its start."""
        return self.networks.split() not in ([], ["none"])

    @property
    def over(self) -> bool:
        """Whether the container is of an ended batch run, which is never started again."""
        return self.kind == "batch" and self.state in ("exited", "dead")

    @property
    def half_started(self) -> bool:
        """Whether the container runtime failed at the start. Docker then refuses each further start."""
        never = self.state == "created" or (self.state == "exited" and self.kind != "batch")
        return never and any(sign in self.error for sign in _HALF_STARTED)

    @property
    def uuids(self) -> tuple[str, ...]:
        """UUIDs of the container's GPUs."""
        return tuple(filter(None, self.gpus.split(",")))

    @property
    def at_work(self) -> str:
        """Description of the user's work that would end with the container; else empty."""
        if not self.running or self.kind in UNATTENDED or (self.kind != "batch" and not self.children):
            return ""
        what = "a batch run" if self.kind == "batch" else processes(self.children)
        return f"workspace {self.workspace} of {self.user} ({what})"


_KIND = TypeAdapter(SpaceContainer)


def trouble_with(docker: str) -> str:
    """Return the error text for the state ``absent`` or ``silent`` of Docker; else empty."""
    if docker == "silent":
        return "Docker does not answer: check systemctl status docker and journalctl -u docker on the host"
    return "Docker is not installed" if docker else ""


@dataclass(frozen=True, slots=True)
class WorkspaceFacts:
    """State of the workspaces on a host, parsed from the output of ``WORKSPACES_PROBE``."""

    docker: str = ""  #: state of Docker: ``absent``, or ``silent`` (not responding); empty if Docker responded
    containers: tuple[SpaceContainer, ...] = ()
    images: dict[str, str] = field(default_factory=dict)  #: image name → image ID
    networks: tuple[str, ...] = ()
    driver: str = ""  #: driver version of kernel module and libraries; empty if they differ
    lately: str = ""  #: time on the host's clock some seconds before the probe, UTC (RFC 3339)
    queued: frozenset[str] = frozenset()  #: names of queued or running batch workspaces
    #: name of a batch workspace → reason why it waits or did not start
    waits: dict[str, str] = field(default_factory=dict)
    ports: frozenset[int] = frozenset()
    #: name of a workspace → definition stored by root
    definitions: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def trouble(self) -> str:
        """Error text if Docker is absent or did not respond; else empty."""
        return trouble_with(self.docker)

    def image(self, name: str) -> str:
        """Return the ID of the image ``name``, in any notation; empty for a missing image."""
        return self.images.get(read_image_name(name).shown, "")

    def unsteady(self, held: SpaceContainer) -> bool:
        """Return whether Docker restarted the container ``held`` a moment ago. Such a container may soon end again."""
        return held.running and held.restarts > 0 and bool(self.lately) and held.started >= self.lately

    def outdated(self, held: SpaceContainer) -> bool:
        """Return whether the running container ``held`` has libraries of another driver version, and cannot use
        GPUs.
        """
        return held.running and bool(self.driver and held.libraries) and held.libraries != self.driver

    def container(self, workspace: str, end: str = "") -> SpaceContainer | None:
        """Return the container of ``workspace``; ``None`` if missing. ``end``: suffix of the container's name, such as
        ``OLD``.
        """
        name = f"/{PREFIX}{workspace}{end}"
        return next((held for held in self.containers if held.name == name and held.workspace == workspace), None)


def read_workspaces(facts: Facts) -> WorkspaceFacts:
    """Parse the output of ``WORKSPACES_PROBE``. If the output is truncated, the state of Docker is ``silent``."""
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
