"""What an inventory says of one person and of one workspace, and what these may have at most."""

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

MOST_WORD_BYTES = 2**17 - 1  #: of an argument: Linux's own (MAX_ARG_STRLEN, which counts the NUL at its end, too)
MOST_WORDS_BYTES = 2**20  #: our choice, of a command: Linux takes 2 MiB with the environment, and Docker adds its own
_POINTER_BYTES = 9  #: what Linux keeps of each word beside its text
_PROXIES = {"http_proxy", "https_proxy", "all_proxy", "ftp_proxy"}
_ITSELF = "localhost,127.0.0.1,::1"
#: else Python keeps 8 KB of it back where there is no terminal, and all of it is lost with a program that is killed
_AT_ONCE = {"PYTHONUNBUFFERED": "1"}
NOBODY = "nobody"  #: whose a model server may be, beside people


def _port(value: Any) -> Any:
    if value == "auto":
        return 0
    try:
        return decimal(value)
    except ValueError:
        found = short(value.text if isinstance(value, Unquoted) else value)
        raise ValueError(f"found {found!r}, expected a port from 1024 on, or auto") from None


Port = Annotated[int, BeforeValidator(_port), Field(ge=0, le=65535)]


@dataclass(frozen=True, slots=True)
class WorkspaceUser:
    """A person who has workspaces."""

    uid: Id | None = None  #: empty: that of the host's account of this name
    gid: Id | None = None  #: empty: the same number as the uid, or the account's group
    groups: tuple[Id, ...] = ()  #: ids of further groups, whose directories of the host they share
    keys: tuple[PublicKey, ...] = ()  #: public SSH keys, for workspaces of the kind ssh
    left: bool = False  #: true: every workspace of this person is removed; their files stay

    def __post_init__(self) -> None:
        if self.gid is not None and self.uid is None:
            raise ValueError("has a gid and no uid: give both, or neither")


@dataclass(frozen=True, slots=True)
class WorkspaceLimits:
    """What several workspaces may have together; empty fields are without a limit."""

    workspaces: Count | None = None
    gpus: Count | None = None
    cpus: Cpus | None = None
    memory: Size | None = None
    shm: Size | None = None
    pids: Annotated[Count, Field(ge=1)] | None = None
    disk: Size | None = None


@dataclass(frozen=True, slots=True)
class WorkspaceEntry:
    """One workspace, as the inventory has it."""

    user: str  #: a name of ``workspaces_users``
    kind: Kind
    gpus: Gpus = ()  #: numbers as ``nvidia-smi -L`` lists them, or UUIDs, of MIG devices too
    share: bool = False  #: true: its GPUs may be given to other workspaces that share, too
    when_idle: bool = False  #: of a batch workspace: true: it waits until nobody computes on its GPUs, which it shares
    cpus: Cpus | None = None  #: empty: all of the host's
    memory: Size | None = None  #: empty: all of the host's
    shm: Size = "1g"  #: shared memory (/dev/shm), with which data loaders and NCCL work
    pids: Pids = 4096  #: processes and threads
    disk: Size | None = None  #: what its files may take, where the file system has project quotas; empty: no limit
    port: Port = 0  #: on the host's loopback; auto: one that follows from the name
    mounts: tuple[Mount, ...] = ()  #: directories of the host, ``/data/set:/data`` or ``/data/set:/data:ro``
    environment: Variables = field(default_factory=dict)  #: for its programs: ``{TZ: Europe/Berlin}``; not for secrets
    image: Image = ""  #: empty: one with the framework of the host's stack
    pull: bool = False  #: true: an image that is not on the host may be pulled from its registry
    command: tuple[Word, ...] = ()  #: of a batch workspace: what it runs, word by word
    script: Script = ""  #: of a batch workspace: the text of a shell script that it runs instead
    logs: str = ""  #: of a tensorboard workspace: the directory with the logs, in the workspace's files or a mount
    #: of a model server: the digest of each version that it serves, which ``serve.up`` brings to the host
    versions: Mapping[Version, Digest] = field(default_factory=dict)
    live: int = 0  #: of a model server: the version to which the label ``live`` leads

    def __post_init__(self) -> None:
        for problem in (self._batch(), self._when_idle(), self._logs(), self._ports(), self._serving()):
            if problem:
                raise ValueError(problem)
        targets = [mount.split(":")[1] for mount in self.mounts]
        if len(set(targets)) < len(targets):
            raise ValueError("two mounts have the same directory in the workspace")

    def _batch(self) -> str:
        given = [name for name in ("command", "script") if getattr(self, name)]
        if self.kind == "batch":
            one = len(given) == 1
            return self._too_long() if one else "a batch workspace runs either a command or a script: give one of them"
        return f"{given[0]} is for the kind batch, and this is {self.kind}" if given else ""

    def _too_long(self) -> str:
        sizes = [len(word.encode(errors="replace")) for word in self.command]
        instead = "put the text into a file among its files, or give a script"
        if sizes and max(sizes) > MOST_WORD_BYTES:
            return f"its command has a word of {max(sizes):,} bytes, and Linux takes {MOST_WORD_BYTES:,}: {instead}"
        if (size := sum(sizes) + _POINTER_BYTES * len(sizes)) > MOST_WORDS_BYTES:
            return f"its command takes {size:,} bytes, and at most {MOST_WORDS_BYTES:,} can be handed over: {instead}"
        return ""

    def _when_idle(self) -> str:
        if not self.when_idle:
            return ""
        if self.kind != "batch":
            return f"when_idle is for the kind batch, and this is {self.kind}"
        if not self.gpus:
            return "when_idle waits for GPUs, and it has none"
        part = next(filter(is_mig, self.gpus), None)
        return f"when_idle waits for whole GPUs, and {part} is a MIG device, whose users have no list" if part else ""

    def _logs(self) -> str:
        if self.kind != "tensorboard":
            return f"logs is for the kind tensorboard, and this is {self.kind}" if self.logs else ""
        directory = self.log_directory
        try:
            clean_path(directory)
        except ValueError as error:
            return f"logs: {error}"
        holders = [HOME, *(mount.split(":")[1] for mount in self.mounts)]
        if any(is_below(directory, holder) for holder in holders):
            return ""
        return f"logs: {directory} is in none of its directories ({', '.join(holders)}): mount the one that holds it"

    def _ports(self) -> str:
        if self.kind == "batch" and self.port:
            return "a batch workspace has no port"
        return (
            f"port {self.port} is one of the system's: take one from 1024 on, or auto" if 0 < self.port < 1024 else ""
        )

    def _serving(self) -> str:
        if self.kind != "serving":
            given = next((name for name in ("versions", "live") if getattr(self, name)), "")
            return f"{given} is for the kind serving, and this is {self.kind}" if given else ""
        if not self.image:
            return (
                f"a model server needs an image that serves, such as {SERVING_TODAY}, or {SERVING_TODAY}-gpu with GPUs"
            )
        if self.live not in self.versions:
            known = ", ".join(map(str, sorted(self.versions))) or "none"
            return f"live: {self.live or 'nothing'} is none of its versions ({known})"
        return ""

    @property
    def variables(self) -> Mapping[str, str]:
        """Its environment. Unless it says otherwise, what a container asks of itself goes to no proxy, and what Python
        prints in a batch run is in its log at once."""
        named = {name.lower() for name in self.environment}
        more = _AT_ONCE if self.kind == "batch" else {}
        if "no_proxy" not in named and named & _PROXIES:
            more = {**more, "no_proxy": _ITSELF, "NO_PROXY": _ITSELF}
        return {**self.environment, **{name: value for name, value in more.items() if name not in self.environment}}

    def cautions(self, name: str) -> tuple[str, ...]:
        """What whoever declares it should know of its limits; ``name`` is the workspace's."""
        return () if self.kind in UNATTENDED else beyond_memory(f"workspace {name}", self.shm, self.memory)

    @property
    def card_variables(self) -> Mapping[str, str]:
        """What its programs are told of GPUs, as far as its environment does not say so itself.

        CUDA begins with the fastest card unless it is told to count as nvidia-smi does, and TensorFlow takes all of a
        card's memory when it begins, so that whoever shares the card finds none.
        """
        variables = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if self.gpus else {}
        if self.gpus and (self.share or self.when_idle):
            variables["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
        return {name: value for name, value in variables.items() if name not in self.environment}

    @property
    def log_directory(self) -> str:
        """Where TensorBoard reads, as the workspace sees it."""
        return self.logs if self.logs.startswith("/") else f"{HOME}/{self.logs or 'logs'}"


def entry_or_nothing(value: Any) -> Any:
    """``alice:`` without anything behind it, as people write it for somebody of whom there is nothing to say."""
    return {} if value is None else value
