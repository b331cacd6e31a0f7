"""Tasks ``workspace.…``. The implementation of a task is imported when the task runs."""

from __future__ import annotations

from typing import Any

from invoke import Collection

from hostwright.cli.verb import CONNECTED, LISTED, OF_ONE, READ, Command, Option, Request, verb

_QUIET = ("host", *READ, *CONNECTED)  #: options with which a task prints only the workspace's output
_FORCE = "end the work of the workspace's user"
_NAME = "the workspace's name"
_ONLY_WRITE = f"write the inventory only; apply it later with {Command('provision', roles='workspaces')}"


#: task options for the fields of a workspace. ``mount`` and ``env`` set ``mounts`` and ``environment``.
_ENTRY = {
    "user": Option("owner: a name of workspaces_users", ""),
    "kind": Option("jupyter (the default), ssh, tensorboard or batch", ""),
    "gpus": Option("indexes from nvidia-smi -L, or UUIDs: 0,1", ""),
    "share": Option("share its GPUs with other workspaces that share", False),
    "when_idle": Option("batch run: wait until no process computes on its GPUs", False),
    "cpus": Option("maximum number of CPUs: 8 or 0.5", ""),
    "memory": Option("maximum memory: 64g", ""),
    "shm": Option("shared memory: 1g", ""),
    "pids": Option("maximum number of processes and threads", ""),
    "disk": Option("maximum size of its files, on a filesystem with project quotas: 200g", ""),
    "port": Option("port on the host's loopback interface, or auto (the default)", ""),
    "mount": Option("host directory: /data/set:/data or /data/set:/data:ro; repeatable", ()),
    "env": Option("environment variable: TZ=Europe/Berlin; repeatable, not for secrets", ()),
    "image": Option("image with an exact tag or digest (default: an image with the framework of the host's stack)", ""),
    "pull": Option("let the host pull the image from its registry", False),
    "command": Option("batch run: command to run", ""),
    "script": Option("batch run: file with a script to run instead", ""),
    "logs": Option("TensorBoard: directory of the logs", ""),
}


@verb(
    *OF_ONE,
    force=_FORCE,
    name="the workspace's name (default: USER-KIND)",
    without="options to remove from the workspace: gpus,share",
    no_provision=_ONLY_WRITE,
    further=_ENTRY,
)
def up(request: Request, /, name: str = "", without: str = "", no_provision: bool = False, **entry: Any) -> int:
    """Declare a workspace in inventory/workspaces.yml, or change its options, and provision its host.

    hostwright workspace.up gpu01 --user alice --kind jupyter --gpus 0
    """
    from hostwright.roles import InputError
    from hostwright.standard.roles.workspaces.verbs import changing

    if not (name or entry["user"]):
        raise InputError("user and name are missing; give --user, or --name of a workspace", "--user")
    taken = [each for each in without.split(",") if each.strip()]
    return changing.change(
        request,
        name or f"{entry['user']}-{entry['kind'] or changing.DEFAULT_KIND}",
        lambda before: changing.changed_entry(before, entry, taken),
        provision=not no_provision,
    )


@verb(*OF_ONE, "yes", force=_FORCE, name=_NAME, no_provision=_ONLY_WRITE)
def down(request: Request, name: str = "", no_provision: bool = False) -> int:
    """Remove a workspace from inventory/workspaces.yml and from its host; its files are kept.

    hostwright workspace.down gpu01 --name alice-jupyter
    """
    from hostwright.standard.roles.workspaces.verbs import changing

    return changing.change(request, name, None, provision=not no_provision)


@verb(*LISTED, called="list")
def list_(request: Request) -> int:
    """Show the workspaces of hosts: user, GPUs, port and state.

    hostwright workspace.list
    """
    from hostwright.standard.roles.workspaces.verbs import queries

    return queries.show_list(request)


@verb(*_QUIET, name=_NAME, lines="number of lines")
def logs(request: Request, name: str = "", lines: int = 100) -> int:
    """Show the last output of a workspace; for a batch run also how it ended.

    hostwright workspace.logs gpu01 --name alice-jupyter
    """
    from hostwright.standard.roles.workspaces.verbs import queries

    return queries.run_in(request, name, lambda space: queries.logs_script(space, lines))


@verb(*OF_ONE, name=_NAME, token="also print its token")  # noqa: S106 - a help text
def url(request: Request, name: str = "", token: bool = False) -> int:
    """Print how to reach a workspace: the SSH tunnel, and the address behind it.

    hostwright workspace.url gpu01 --name alice-jupyter
    """
    from hostwright.standard.roles.workspaces.verbs import queries

    return queries.show_url(request, name, token=token)


@verb(*_QUIET, called="exec", name=_NAME, command="command for its shell")
def exec_(request: Request, name: str = "", command: str = "") -> int:
    """Run a command in a workspace as its user, and exit with the command's status.

    hostwright workspace.exec gpu01 --name alice-jupyter --command nvidia-smi
    """
    from hostwright.standard.roles.workspaces.verbs import queries

    return queries.run_in(request, name, lambda space: queries.exec_script(space, command), queries.LEFT_BY_COMMAND)


@verb(
    "host",
    *READ,
    name=_NAME,
    format="compose, compose-runtime (version 2.4), slurm or kubernetes",
    nodes="batch run for slurm or kubernetes: number of hosts of a distributed training",
    storage="for kubernetes: size of the claim for its files",
)
def export(request: Request, name: str = "", format: str = "compose", nodes: int = 1, storage: str = "50Gi") -> int:
    """Print a workspace as a Compose file, Slurm script or Kubernetes manifests, without connecting to a host.

    hostwright workspace.export gpu01 --name alice-jupyter --format slurm
    """
    from hostwright.standard.roles.workspaces.verbs import exporting

    return exporting.export(request, name, format, nodes=nodes, storage=storage)


namespace = Collection("workspace", up, down, list_, logs, url, exec_, export)
