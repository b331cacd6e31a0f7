"""Inventory entries of the role ``workspaces``: users, workspaces, and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from hostwright.roles import Unquoted, clean_path, short
from hostwright.standard.roles.workspaces.declared.forms import (
    HOME,
    UNATTENDED,
    Count,
    Cpus,
    Digest,
    Id,
    Image,
    Kind,
    Mount,
    Pids,
    PublicKey,
    Script,
    Size,
    Variables,
    Version,
    Word,
    beyond_memory,
    decimal,
    is_below,
)
from hostwright.standard.roles.workspaces.declared.gpus import Gpus, is_mig
from hostwright.standard.roles.workspaces.declared.images import SERVING_TODAY

#: maximum bytes of an argument: Linux's MAX_ARG_STRLEN, with the final NUL
MOST_WORD_BYTES = 2**17 - 1
#: maximum bytes of a command, below Linux's limit of 2 MiB (our choice)
MOST_WORDS_BYTES = 2**20
_POINTER_BYTES = 9  #: number of bytes that Linux adds to a command for each argument
_PROXIES = {"http_proxy", "https_proxy", "all_proxy", "ftp_proxy"}
_ITSELF = "localhost,127.0.0.1,::1"
#: environment variables of batch runs. Without PYTHONUNBUFFERED, a killed program loses up to 8 KB of output.
_AT_ONCE = {"PYTHONUNBUFFERED": "1"}
NOBODY = "nobody"  #: name of the account that runs a model server without a user


def _port(value: Any) -> Any:
    if value == "auto":
        return 0
    try:
        return decimal(value)
    except ValueError:
        found = short(value.text if isinstance(value, Unquoted) else value)
        raise ValueError(f"found {found!r}, expected a port from 1024 on, or 'auto'") from None


Port = Annotated[int, BeforeValidator(_port), Field(ge=0, le=65535)]


@dataclass(frozen=True, slots=True)
class WorkspaceUser:
    """Inventory entry of a user of workspaces."""

    uid: Id | None = None  #: UID of the user; empty: the UID of the host's account of this name
    gid: Id | None = None  #: GID of the user; empty: the same number as ``uid``, or the group of the host's account
    groups: tuple[Id, ...] = ()  #: IDs of further groups, for shared directories of the host
    keys: tuple[PublicKey, ...] = ()  #: public SSH keys, for workspaces of the kind ssh
    left: bool = False  #: true: all workspaces of this user are removed; the user's files are kept

    def __post_init__(self) -> None:
        if self.gid is not None and self.uid is None:
            raise ValueError("gid is set without uid; give both or neither")


@dataclass(frozen=True, slots=True)
class WorkspaceLimits:
    """Limits for the sums of several workspaces' resources. Empty: no limit."""

    workspaces: Count | None = None
    gpus: Count | None = None
    cpus: Cpus | None = None
    memory: Size | None = None
    shm: Size | None = None
    pids: Annotated[Count, Field(ge=1)] | None = None
    disk: Size | None = None


@dataclass(frozen=True, slots=True)
class WorkspaceEntry:
    """Inventory entry of one workspace."""

    user: str  #: name of a user in ``workspaces_users``
    kind: Kind
    gpus: Gpus = ()  #: GPUs: indexes from ``nvidia-smi -L``, or UUIDs, also of MIG devices
    share: bool = False  #: true: other workspaces with ``share`` can use the same GPUs
    #: batch only; true: the run shares the GPUs, and waits until no other process uses the GPUs
    when_idle: bool = False
    cpus: Cpus | None = None  #: number of CPUs; empty: all CPUs of the host
    memory: Size | None = None  #: memory limit; empty: all memory of the host
    shm: Size = "1g"  #: size of shared memory (/dev/shm), which data loaders and NCCL use
    pids: Pids = 4096  #: maximum number of processes and threads
    #: size limit of the workspace's files; needs a filesystem with project quotas; empty: no limit
    disk: Size | None = None
    port: Port = 0  #: port on the host's loopback interface; auto: a port derived from the workspace's name
    mounts: tuple[Mount, ...] = ()  #: host directories to mount, as ``/data/set:/data`` or ``/data/set:/data:ro``
    #: environment variables of the workspace's programs: ``{TZ: Europe/Berlin}``; not for secrets
    environment: Variables = field(default_factory=dict)
    image: Image = ""  #: container image; empty: an image with the framework of the host's stack
    pull: bool = False  #: true: the host may pull a missing image from the image's registry
    command: tuple[Word, ...] = ()  #: batch only: the command to run, and the arguments of the command
    script: Script = ""  #: batch only: shell script to run instead of a command
    logs: str = ""  #: tensorboard only: directory of the logs, in the workspace's files or a mount
    #: model server only: digest of each served version, which ``serve.up`` uploads to the host
    versions: Mapping[Version, Digest] = field(default_factory=dict)
    live: int = 0  #: model server only: version with the label ``live``

    def __post_init__(self) -> None:
        for problem in (self._batch(), self._when_idle(), self._logs(), self._ports(), self._serving()):
            if problem:
                raise ValueError(problem)
        targets = [mount.split(":")[1] for mount in self.mounts]
        if len(set(targets)) < len(targets):
            raise ValueError("two mounts have the same container directory; give each mount its own")

    def _batch(self) -> str:
        given = [name for name in ("command", "script") if getattr(self, name)]
        if self.kind == "batch":
            one = len(given) == 1
            return self._too_long() if one else "a batch workspace runs either a command or a script; give one of them"
        return f"{given[0]} is only for the kind batch, but the kind is {self.kind}" if given else ""

    def _too_long(self) -> str:
        sizes = [len(word.encode(errors="replace")) for word in self.command]
        instead = "put the text into a file of the workspace, or use script"
        if sizes and max(sizes) > MOST_WORD_BYTES:
            return f"an argument in command has {max(sizes):,} bytes, but Linux allows {MOST_WORD_BYTES:,}; {instead}"
        if (size := sum(sizes) + _POINTER_BYTES * len(sizes)) > MOST_WORDS_BYTES:
            return f"its command has {size:,} bytes, but the limit is {MOST_WORDS_BYTES:,}; {instead}"
        return ""

    def _when_idle(self) -> str:
        if not self.when_idle:
            return ""
        if self.kind != "batch":
            return f"when_idle is only for the kind batch, but the kind is {self.kind}"
        if not self.gpus:
            return "when_idle needs gpus"
        part = next(filter(is_mig, self.gpus), None)
        return f"when_idle needs whole GPUs, but {part} is a MIG device, without a process list" if part else ""

    def _logs(self) -> str:
        if self.kind != "tensorboard":
            return f"logs is only for the kind tensorboard, but the kind is {self.kind}" if self.logs else ""
        directory = self.log_directory
        try:
            clean_path(directory)
        except ValueError as error:
            return f"logs: {error}"
        holders = [HOME, *(mount.split(":")[1] for mount in self.mounts)]
        if any(is_below(directory, holder) for holder in holders):
            return ""
        return f"logs: {directory} is in none of its directories ({', '.join(holders)}); mount the directory"

    def _ports(self) -> str:
        if self.kind == "batch" and self.port:
            return "a batch workspace has no port"
        return f"port {self.port} is reserved; use a port from 1024 on, or 'auto'" if 0 < self.port < 1024 else ""

    def _serving(self) -> str:
        if self.kind != "serving":
            given = next((name for name in ("versions", "live") if getattr(self, name)), "")
            return f"{given} is only for the kind serving, but the kind is {self.kind}" if given else ""
        if not self.image:
            return f"a model server needs a serving image, such as {SERVING_TODAY}, or {SERVING_TODAY}-gpu with GPUs"
        if self.live not in self.versions:
            known = ", ".join(map(str, sorted(self.versions))) or "none"
            return f"live: {self.live or 'nothing'} is not one of its versions ({known})"
        return ""

    @property
    def variables(self) -> Mapping[str, str]:
        """Environment variables of the workspace's programs: ``environment``, and defaults. By default, loopback
        addresses bypass the proxy, and Python in a batch run does not buffer its output.
        """
        named = {name.lower() for name in self.environment}
        more = _AT_ONCE if self.kind == "batch" else {}
        if "no_proxy" not in named and named & _PROXIES:
            more = {**more, "no_proxy": _ITSELF, "NO_PROXY": _ITSELF}
        return {**self.environment, **{name: value for name, value in more.items() if name not in self.environment}}

    def cautions(self, name: str) -> tuple[str, ...]:
        """Return a warning if the shared memory of the workspace ``name`` exceeds the workspace's memory limit."""
        return () if self.kind in UNATTENDED else beyond_memory(f"workspace {name}", self.shm, self.memory)

    @property
    def card_variables(self) -> Mapping[str, str]:
        """Environment variables about GPUs for the workspace's programs, except variables in ``environment``.

        The variables select nvidia-smi's order of GPUs, and prevent TensorFlow from allocating all memory of a shared
        GPU.
        """
        variables = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if self.gpus else {}
        if self.gpus and (self.share or self.when_idle):
            variables["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
        return {name: value for name, value in variables.items() if name not in self.environment}

    @property
    def log_directory(self) -> str:
        """Path in the container of TensorBoard's logs."""
        return self.logs if self.logs.startswith("/") else f"{HOME}/{self.logs or 'logs'}"


def entry_or_nothing(value: Any) -> Any:
    """Return an empty mapping in place of ``None``, because ``alice:`` in YAML declares an entry without settings."""
    return {} if value is None else value
