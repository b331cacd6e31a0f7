"""Arguments of ``docker create`` for a workspace's container: limits, mounts, network and program."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.standard.roles.workspaces.declared.entries import WorkspaceEntry
from hostwright.standard.roles.workspaces.declared.forms import HOME, is_below
from hostwright.standard.roles.workspaces.declared.workspace import Workspace

RUN = "/run/hostwright"  #: directory in the container for read-only files of root
#: kind of workspace → port of the program in the container; 0: no port
INSIDE = {"jupyter": 8888, "tensorboard": 6006, "ssh": 2222, "batch": 0, "serving": 8501}
WITH_SHELLS = ("jupyter", "batch")  #: workspace kinds with shells
_LOGS = ("--log-driver", "json-file", "--log-opt", "max-size=10m", "--log-opt", "max-file=3")
MODELS = "/models"  #: directory in a model server's container for the server's configuration and models
_CONFIG = f"{MODELS}/models.config"
#: command of TensorFlow Serving that continues if a version fails to load, and that accepts labels of versions that are
#: not yet loaded
_MODEL_SERVER = (
    "tensorflow_model_server", "--rest_api_port=8501", f"--model_config_file={_CONFIG}",
    "--model_config_file_poll_wait_seconds=1", "--file_system_poll_wait_seconds=1", "--max_num_load_retries=0",
    "--num_load_threads=1", "--num_unload_threads=1", "--allow_version_labels_for_unavailable_models=true",
)  # fmt: skip
#: options with which the init process signals all processes. Otherwise the end of a shell ends the container before
#: child programs have saved data.
_TOGETHER = ("--env", "TINI_KILL_PROCESS_GROUP=1")
_AWAITED = (
    "exec 2>&1; "  # Docker does not keep the order between two streams
    'unset TINI_KILL_PROCESS_GROUP; trap ended=yes TERM; "$@"; status=$?; '
    '[ -z "${ended:-}" ] || while kill -0 -1 2>/dev/null; do sleep 0.2; done; exit "$status"'
)
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_PROGRAM = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9_.+-]*")  #: pattern of a program name that ``env`` searches on PATH
STOP_S = 20  #: seconds from the stop signal to the kill signal for a container
#: shell code that sets SHELL to a shell in the image. Without SHELL, Jupyter's terminals run sh. With a missing shell,
#: they do not start.
_SHELL = (
    'for shell in "${SHELL:-bash}" bash sh; do shell=$(command -v "$shell") && [ -x "$shell" ] && break; done; '
    'export SHELL="$shell"; '
)
_JUPYTER = (
    f"{_SHELL}if command -v jupyter-lab >/dev/null; then exec jupyter lab --config={RUN}/jupyter_config.py; fi; "
    f"exec jupyter notebook --config={RUN}/jupyter_config.py"
)
#: command that disables TensorBoard's fast loader, which misses replaced files. TensorBoard before 2.5 refuses the
#: option, and then runs without it.
_BOARD = '"$0" "$@" --detect_file_replacement=true; status=$?; [ "$status" -ne 2 ] || exec "$0" "$@"; exit "$status"'


@dataclass(frozen=True, slots=True)
class Placed:
    """Values of a workspace on its host, such as user IDs, GPU UUIDs and image ID."""

    uid: int
    gid: int
    uuids: tuple[str, ...]
    image: str
    reference: str
    definition: str


def network_of(user: str) -> str:
    """Return the name of the user's Docker network. Containers in this network cannot reach each other."""
    return f"hostwright-{user}"


def bridge_of(user: str) -> str:
    """Return the name of the bridge of a user's Docker network. The firewall rules have this name
    (``sh/network/closed.sh``).
    """
    return f"hww-{hashlib.sha256(user.encode()).hexdigest()[:10]}"


def docker_arguments(space: Workspace, placed: Placed) -> tuple[str, ...]:
    """Return the arguments of ``docker create`` for the workspace's container, except the container's name."""
    return (
        *_labels(space, placed),
        *_limits(space),
        *_rights(space, placed),
        *_devices(space, placed),
        *_network(space),
        *_mounts(space),
        *_LOGS,
        # Jupyter does not reap orphaned processes, so Docker's init process must do so; sshd reaps orphans.
        *(() if space.entry.kind == "ssh" else ("--init",)),
        "--stop-timeout", str(STOP_S),
        "--restart", "no" if space.entry.kind == "batch" else "unless-stopped",
        *_program(space, placed),
    )  # fmt: skip


def _labels(space: Workspace, placed: Placed) -> Iterator[str]:
    labels = {
        "workspace": space.name,
        "user": space.owner,
        "kind": space.entry.kind,
        "definition": placed.definition,
        "asked": ",".join(space.entry.gpus),
        "gpus": ",".join(placed.uuids),
        "share": "true" if space.entry.share else "false",
        "port": str(space.port),
        "reference": placed.reference,
    }
    if space.entry.when_idle:
        labels["when_idle"] = "true"
    for name, value in labels.items():
        yield from ("--label", f"hostwright.{name}={value}")


def _limits(space: Workspace) -> Iterator[str]:
    entry = space.entry
    if entry.memory:
        yield from ("--memory", entry.memory, "--memory-swap", entry.memory)
    if entry.cpus:
        yield from ("--cpus", f"{entry.cpus:g}")
    yield from ("--pids-limit", str(entry.pids), "--shm-size", entry.shm)


def _rights(space: Workspace, placed: Placed) -> Iterator[str]:
    """Yield options for the user's IDs and no capabilities.

    As root, a process could reach root's files on the host through the user's links.
    """
    yield from ("--security-opt", "no-new-privileges", "--cap-drop", "ALL", "--user", f"{placed.uid}:{placed.gid}")
    for group in space.user.groups:
        yield from ("--group-add", str(group))


def _devices(space: Workspace, placed: Placed) -> tuple[str, ...]:
    """Return options for GPUs by UUID. Without GPUs, ``void`` overrides an image that requests all GPUs."""
    if not placed.uuids:
        return ("--env", "NVIDIA_VISIBLE_DEVICES=void")
    visible = f"NVIDIA_VISIBLE_DEVICES={','.join(placed.uuids)}"
    variables = (word for name, value in space.entry.card_variables.items() for word in ("--env", f"{name}={value}"))
    return ("--runtime", "nvidia", "--env", visible, "--env", "NVIDIA_DRIVER_CAPABILITIES=compute,utility", *variables)


def _network(space: Workspace) -> Iterator[str]:
    yield from ("--network", network_of(space.owner), "--hostname", space.name)
    if space.port:
        yield from ("--publish", f"127.0.0.1:{space.port}:{INSIDE[space.entry.kind]}")


def _mounts(space: Workspace) -> Iterator[str]:
    yield from _mount(space.directory, HOME)
    for mount in space.entry.mounts:
        source, target, *mode = mount.split(":")
        yield from _mount(source, target, readonly=mode == ["ro"])
    if space.entry.kind == "serving":
        yield from _mount(f"{space.state}/models", MODELS, readonly=True)
    for file, target in state_files(space):
        yield from _mount(f"{space.state}/{file}", target, readonly=True)


def state_files(space: Workspace) -> tuple[tuple[str, str], ...]:
    """Return the name in ``space.state`` and the path in the container, for each file that root provides."""
    own = {
        "jupyter": (("token", f"{RUN}/token"), ("jupyter_config.py", f"{RUN}/jupyter_config.py")),
        "batch": (("script", f"{RUN}/script"),) if space.entry.script else (),
        "ssh": (("authorized_keys", f"{RUN}/authorized_keys"), ("host_key", f"{RUN}/host_key")),
    }
    shells = (("profile", "/etc/profile.d/hostwright.sh"),) if space.entry.kind in WITH_SHELLS else ()
    return (("passwd", "/etc/passwd"), ("group", "/etc/group"), *shells, *own.get(space.entry.kind, ()))


def _mount(source: str, target: str, *, readonly: bool = False) -> tuple[str, str]:
    return "--mount", f"type=bind,source={source},target={target}" + (",readonly" if readonly else "")


def _program(space: Workspace, placed: Placed) -> tuple[str, ...]:
    name = space.owner
    # git finds no email address in a host name without a dot. The user's configuration overrides EMAIL.
    own = {"HOME": HOME, "USER": name, "LOGNAME": name, "EMAIL": f"{name}@{space.name}"}
    environment = tuple(word for variable, value in own.items() for word in ("--env", f"{variable}={value}"))
    environment += ("--workdir", HOME)
    if space.entry.kind == "jupyter":  # Jupyter must start on a full disk, so that the user can free space
        environment += ("--env", "JUPYTER_RUNTIME_DIR=/tmp/jupyter")
    more = (word for name, value in space.entry.variables.items() for word in ("--env", f"{name}={value}"))
    program, *words = command = _command(space)
    if space.entry.kind == "tensorboard":
        environment += _TOGETHER
    if space.entry.kind == "batch" and _is_shell(space.entry):
        program, *words = ("/bin/sh", "-c", _AWAITED, "batch", *command)
        environment += _TOGETHER
    return (*environment, *more, "--entrypoint", program, placed.image, *words)


def _is_shell(entry: WorkspaceEntry) -> bool:
    if not entry.script:
        return posixpath.basename(entry.command[0]) in _SHELLS
    first = entry.script.partition("\n")[0]
    return not first.startswith("#!") or any(posixpath.basename(word) in _SHELLS for word in first[2:].split())


def interpreter_of(entry: WorkspaceEntry) -> str:
    """Return the interpreter in the first line of the entry's script, if the image must contain this interpreter.

    Returns an empty text for an interpreter in the user's files or a mount, and for a line that only ``env`` can parse.

    >>> interpreter_of(WorkspaceEntry("bob", "batch", script="#!/usr/bin/env python3\\nprint(1)\\n"))
    'python3'
    """
    first = entry.script.partition("\n")[0]
    path, *rest = first[2:].split(None, 1) if first.startswith("#!") and first[2:].strip() else ("",)
    if posixpath.basename(path) == "env" and rest:  # Linux passes the rest as one argument, which ``env -S`` splits
        words = rest[0].removeprefix("-S").split() if rest[0].startswith("-S") else [rest[0].strip()]
        path = next((word for word in words if "=" not in word), "")
        return path if _PROGRAM.fullmatch(path) and not re.search(r"[\"'\\$]", rest[0]) else ""
    held = (HOME, *(mount.split(":")[1] for mount in entry.mounts))
    return path if path.startswith("/") and not any(is_below(path, place) for place in held) else ""


def _command(space: Workspace) -> tuple[str, ...]:
    entry = space.entry
    if entry.kind == "jupyter":
        return ("/bin/sh", "-c", _JUPYTER)
    if entry.kind == "tensorboard":
        where = ("--host", "0.0.0.0", "--port", str(INSIDE["tensorboard"]))  # noqa: S104 - of the container alone
        words = ("--logdir", entry.log_directory, *where, "--path_prefix", space.path.rstrip("/"))
        return ("/bin/sh", "-c", _BOARD, "tensorboard", *words, "--reload_multifile=true")
    if entry.kind == "serving":
        return _MODEL_SERVER
    if entry.kind == "ssh":
        return ("/usr/local/sbin/hostwright-sshd",)
    if entry.script:
        return (f"{RUN}/script",) if entry.script.startswith("#!") else ("/bin/sh", f"{RUN}/script")
    return entry.command
