"""The verbs ``workspace.…``. What they need is imported when one is run."""

from __future__ import annotations

from typing import Any

from invoke import Collection

from hostwright.cli.verb import CONNECTED, LISTED, OF_ONE, READ, Command, Option, Request, verb

_QUIET = ("host", *READ, *CONNECTED)  #: of verbs that print what the workspace prints
_FORCE = "end the work of whoever is in the workspace"
_NAME = "the workspace's name"
_ONLY_WRITE = f"only write the inventory; {Command('provision', roles='workspaces')} does the rest"


#: what the file says of a workspace, field by field; ``mount`` and ``env`` are its ``mounts`` and ``environment``
_ENTRY = {
    "user": Option("whose it is: a name of workspaces_users", ""),
    "kind": Option("jupyter (the default), ssh, tensorboard or batch", ""),
    "gpus": Option("numbers as nvidia-smi -L lists them, or UUIDs: 0,1", ""),
    "share": Option("its GPUs may be given to other workspaces that share, too", False),
    "when_idle": Option("of a batch run: wait until nobody computes on its GPUs", False),
    "cpus": Option("at most this many CPUs: 8 or 0.5", ""),
    "memory": Option("at most this much memory: 64g", ""),
    "shm": Option("shared memory: 1g", ""),
    "pids": Option("at most this many processes and threads", ""),
    "disk": Option("what its files may take, where the file system has project quotas: 200g", ""),
    "port": Option("on the host's loopback, or auto (the default)", ""),
    "mount": Option("a directory of the host: /data/set:/data or /data/set:/data:ro; repeatable", ()),
    "env": Option("a variable for its programs: TZ=Europe/Berlin; repeatable, and not for secrets", ()),
    "image": Option("with its exact tag or digest (default: one with the framework of the host's stack)", ""),
    "pull": Option("the host may pull the image from its registry", False),
    "command": Option("of a batch run: what it runs", ""),
    "script": Option("of a batch run: a file with the script that it runs instead", ""),
    "logs": Option("of a TensorBoard: the directory with the logs", ""),
}


@verb(
    *OF_ONE,
    force=_FORCE,
    name="its name (default: USER-KIND)",
    without="options that it has and shall have no longer: gpus,share",
    no_provision=_ONLY_WRITE,
    further=_ENTRY,
)
def up(request: Request, /, name: str = "", without: str = "", no_provision: bool = False, **entry: Any) -> int:
    """Declare a workspace in inventory/workspaces.yml, or change options of one, and bring its host to it.

    hostwright workspace.up gpu01 --user alice --kind jupyter --gpus 0
    """
    from hostwright.roles import InputError
    from hostwright.standard.roles.workspaces.verbs import changing

    if not (name or entry["user"]):
        raise InputError("say whose workspace it is (--user), or which one (--name)", "--user")
    taken = [each for each in without.split(",") if each.strip()]
    return changing.change(
        request,
        name or f"{entry['user']}-{entry['kind'] or changing.DEFAULT_KIND}",
        lambda before: changing.changed_entry(before, entry, taken),
        provision=not no_provision,
    )


@verb(*OF_ONE, "yes", force=_FORCE, name=_NAME, no_provision=_ONLY_WRITE)
def down(request: Request, name: str = "", no_provision: bool = False) -> int:
    """Take a workspace out of inventory/workspaces.yml and off its host; its files stay.

    hostwright workspace.down gpu01 --name alice-jupyter
    """
    from hostwright.standard.roles.workspaces.verbs import changing

    return changing.change(request, name, None, provision=not no_provision)


@verb(*LISTED, called="list")
def list_(request: Request) -> int:
    """Show the workspaces of hosts: whose, with which GPUs and port, and whether they run.

    hostwright workspace.list
    """
    from hostwright.standard.roles.workspaces.verbs import queries

    return queries.show_list(request)


@verb(*_QUIET, name=_NAME, lines="how many")
def logs(request: Request, name: str = "", lines: int = 100) -> int:
    """Show the last lines that a workspace printed; of a batch run also how it ended.

    hostwright workspace.logs gpu01 --name alice-jupyter
    """
    from hostwright.standard.roles.workspaces.verbs import queries

    return queries.run_in(request, name, lambda space: queries.logs_script(space, lines))


@verb(*OF_ONE, name=_NAME, token="print its token, too")  # noqa: S106 - a help text
def url(request: Request, name: str = "", token: bool = False) -> int:
    """Print how to reach a workspace: the SSH tunnel, and what to open behind it.

    hostwright workspace.url gpu01 --name alice-jupyter
    """
    from hostwright.standard.roles.workspaces.verbs import queries

    return queries.show_url(request, name, token=token)


@verb(*_QUIET, called="exec", name=_NAME, command="what its shell shall run")
def exec_(request: Request, name: str = "", command: str = "") -> int:
    """Run a command in a workspace, as its user, and end with its status.

    hostwright workspace.exec gpu01 --name alice-jupyter --command nvidia-smi
    """
    from hostwright.standard.roles.workspaces.verbs import queries

    return queries.run_in(request, name, lambda space: queries.exec_script(space, command), queries.LEFT_BY_COMMAND)


@verb(
    "host",
    *READ,
    name=_NAME,
    format="compose, compose-runtime (version 2.4), slurm or kubernetes",
    nodes="of a batch run for slurm or kubernetes: on how many hosts it trains together",
    storage="for kubernetes: the size of the claim that holds its files",
)
def export(request: Request, name: str = "", format: str = "compose", nodes: int = 1, storage: str = "50Gi") -> int:
    """Print a workspace as a Compose file, a Slurm script or Kubernetes manifests; no host is asked.

    hostwright workspace.export gpu01 --name alice-jupyter --format slurm
    """
    from hostwright.standard.roles.workspaces.verbs import exporting

    return exporting.export(request, name, format, nodes=nodes, storage=storage)


namespace = Collection("workspace", up, down, list_, logs, url, exec_, export)
