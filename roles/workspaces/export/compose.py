"""Export of a workspace as a Compose file for the workspace's host."""

from __future__ import annotations

from typing import Any

from hostwright.roles import InputError
from hostwright.standard.roles.workspaces.declared.entries import WorkspaceEntry
from hostwright.standard.roles.workspaces.declared.forms import HOME
from hostwright.standard.roles.workspaces.declared.workspace import Workspace
from hostwright.standard.roles.workspaces.export.inside import PORTS, command_inside
from hostwright.standard.roles.workspaces.export.yamltext import yaml_text

HEAD = "# The workspace {name} of {user}, for {tool}\n"


def compose(workspace: Workspace) -> str:
    """Return the workspace as a Compose file for `docker compose` (v2), with the GPUs as reserved devices.

    Raises ``InputError`` for the SSH container of a user, because the host builds the container's image.
    """
    service = _service(workspace)
    if workspace.entry.gpus:
        device = {"driver": "nvidia", "device_ids": list(workspace.entry.gpus), "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    return _text(workspace, service, {}, "docker compose")


def compose_runtime(workspace: Workspace) -> str:
    """Return the workspace as a Compose file of format 2.4, for `docker-compose` 1.25 and later.

    The nvidia runtime provides the GPUs. Raises ``InputError`` for the SSH container of a user, because the host builds
    the container's image.
    """
    service = _service(workspace)
    if workspace.entry.gpus:
        service["runtime"] = "nvidia"
        service["environment"]["NVIDIA_VISIBLE_DEVICES"] = ",".join(workspace.entry.gpus)
    return _text(workspace, service, {"version": "2.4"}, "docker-compose 1.25 or later")


def _service(workspace: Workspace) -> dict[str, Any]:
    entry = workspace.entry
    if entry.kind == "ssh":
        raise InputError(f"{workspace.name} is an SSH box, whose image is built on its host; Compose cannot use it")
    service: dict[str, Any] = {
        "image": entry.image,
        "container_name": workspace.name,
        "hostname": workspace.name,
        "init": True,
        "restart": "no" if entry.kind == "batch" else "unless-stopped",
        "working_dir": HOME,
        "environment": {"HOME": HOME, "USER": workspace.owner, **_variables(entry)},
        "entrypoint": [_plain(word) for word in command_inside(workspace)],
        "volumes": [f"{workspace.directory}:{HOME}", *entry.mounts],
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "pids_limit": entry.pids,
        "shm_size": entry.shm,
    }
    if workspace.user.uid is not None:
        gid = workspace.user.uid if workspace.user.gid is None else workspace.user.gid
        service["user"] = f"{workspace.user.uid}:{gid}"
    if workspace.user.groups:
        service["group_add"] = [str(group) for group in workspace.user.groups]
    if entry.cpus:
        service["cpus"] = entry.cpus
    if entry.memory:
        service |= {"mem_limit": entry.memory, "memswap_limit": entry.memory}
    if workspace.port and entry.kind in PORTS:
        service["ports"] = [f"127.0.0.1:{workspace.port}:{PORTS[entry.kind]}"]
    return service


def _plain(text: str) -> str:
    """Double each dollar sign, because Compose expands single ones."""
    return text.replace("$", "$$")


def _variables(entry: WorkspaceEntry) -> dict[str, str]:
    """Return environment variables. Without GPUs, the variables override an image that requests all GPUs."""
    cards = entry.card_variables if entry.gpus else {"NVIDIA_VISIBLE_DEVICES": "void"}
    return {**cards, **{name: _plain(value) for name, value in entry.variables.items()}}


def _text(workspace: Workspace, service: dict[str, Any], head: dict[str, Any], tool: str) -> str:
    document = {**head, "services": {workspace.name: service}}
    comment = HEAD.format(name=workspace.name, user=workspace.owner, tool=tool)
    return comment + yaml_text([document])
