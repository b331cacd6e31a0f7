"""The verbs ``workspace.…``. What they need is imported when one is run."""

from __future__ import annotations

from invoke import Collection, Context, task

from hostwright.cli.arguments import ConnectionOptions, Selection
from hostwright.cli.tasks.options import REACHED, ends, helps

_OF_ONE = ("inventory", "vault_password_file", "ask_vault_password", "strict", "json", "ask_become_pass", "accept_new")
_HOST = "the host"
_NAME = "the workspace's name"
_ONLY_WRITE = "only write the inventory; `invoke provision --roles workspaces` does the rest"
_FORCE = "end the work of whoever is in the workspace"


@task(
    help=helps(
        *_OF_ONE,
        host=_HOST,
        user="whose it is: a name of workspaces_users",
        name="its name (default: USER-KIND)",
        kind="jupyter, ssh, tensorboard or batch",
        gpus="numbers as nvidia-smi -L lists them, or UUIDs: 0,1",
        share="its GPUs may be given to other workspaces that share, too",
        when_idle="of a batch run: wait until nobody computes on its GPUs",
        cpus="at most this many CPUs: 8 or 0.5",
        memory="at most this much memory: 64g",
        shm="shared memory: 1g",
        pids="at most this many processes and threads",
        disk="what its files may take, where the file system has project quotas: 200g",
        port="on the host's loopback (default: auto)",
        mount="a directory of the host: /data/set:/data or /data/set:/data:ro; repeatable",
        image="with its exact tag or digest",
        pull="the host may pull the image from its registry",
        command="of a batch run: what it runs",
        script="of a batch run: a file with the script that it runs instead",
        logs="of a TensorBoard: the directory with the logs",
        no_provision=_ONLY_WRITE,
        force=_FORCE,
    ),
    iterable=["inventory", "mount"],
    auto_shortflags=False,
)
@ends
def up(
    c: Context,  # noqa: ARG001 - Invoke's
    host: str = "",
    user: str = "",
    name: str = "",
    kind: str = "jupyter",
    gpus: str = "",
    share: bool = False,
    when_idle: bool = False,
    cpus: str = "",
    memory: str = "",
    shm: str = "",
    pids: str = "",
    disk: str = "",
    port: str = "auto",
    mount: list[str] | None = None,
    image: str = "",
    pull: bool = False,
    command: str = "",
    script: str = "",
    logs: str = "",
    no_provision: bool = False,
    inventory: list[str] | None = None,
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    force: bool = False,
) -> int:
    """Declare a workspace in inventory/workspaces.yml, and bring its host to it."""
    from hostwright.standard.roles.workspaces.verbs import changing

    options = {
        "user": user, "kind": kind, "gpus": gpus, "share": share, "when_idle": when_idle, "cpus": cpus,
        "memory": memory, "shm": shm, "pids": pids, "disk": disk, "port": port, "mount": list(mount or ()),
        "image": image, "pull": pull, "command": command, "script": script, "logs": logs,
    }  # fmt: skip
    return changing.change(
        Selection(host, tuple(inventory or ())),
        ConnectionOptions(ask_become_pass, accept_new),
        name or f"{user}-{kind}",
        changing.entry_of(options),
        provision=not no_provision,
        force=force,
        as_json=json,
    )


@task(
    help=helps(*_OF_ONE, host=_HOST, name=_NAME, no_provision=_ONLY_WRITE, force=_FORCE),
    iterable=["inventory"],
    auto_shortflags=False,
)
@ends
def down(
    c: Context,  # noqa: ARG001 - Invoke's
    host: str = "",
    name: str = "",
    no_provision: bool = False,
    inventory: list[str] | None = None,
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    force: bool = False,
) -> int:
    """Take a workspace out of inventory/workspaces.yml and off its host; its files stay."""
    from hostwright.standard.roles.workspaces.verbs import changing

    return changing.change(
        Selection(host, tuple(inventory or ())),
        ConnectionOptions(ask_become_pass, accept_new),
        name,
        None,
        provision=not no_provision,
        force=force,
        as_json=json,
    )


@task(name="list", help=helps(*REACHED), iterable=["inventory"], auto_shortflags=False)
@ends
def list_(
    c: Context,  # noqa: ARG001 - Invoke's
    hosts: str = "all",
    inventory: list[str] | None = None,
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
) -> int:
    """Show the workspaces of hosts: whose, with which GPUs and port, and whether they run."""
    from hostwright.standard.roles.workspaces.verbs import looking

    return looking.show_list(
        Selection(hosts, tuple(inventory or ())), ConnectionOptions(ask_become_pass, accept_new), as_json=json
    )


@task(
    help=helps(*(name for name in _OF_ONE if name != "json"), host=_HOST, name=_NAME, lines="how many"),
    iterable=["inventory"],
    auto_shortflags=False,
)
@ends
def logs(
    c: Context,  # noqa: ARG001 - Invoke's
    name: str = "",
    host: str = "",
    lines: int = 100,
    inventory: list[str] | None = None,
    ask_become_pass: bool = False,
    accept_new: bool = False,
) -> int:
    """Show the last lines that a workspace printed; of a batch run also how it ended."""
    from hostwright.standard.roles.workspaces.verbs import looking

    connection = ConnectionOptions(ask_become_pass, accept_new)
    return looking.run_in(
        Selection(host, tuple(inventory or ())), connection, name, lambda space: looking.logs_script(space, lines)
    )


@task(
    help=helps(*_OF_ONE, host=_HOST, name=_NAME, token="print its token, too"),  # noqa: S106 - a help text
    iterable=["inventory"],
    auto_shortflags=False,
)
@ends
def url(
    c: Context,  # noqa: ARG001 - Invoke's
    name: str = "",
    host: str = "",
    token: bool = False,
    inventory: list[str] | None = None,
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
) -> int:
    """Print how to reach a workspace: the SSH tunnel, and what to open behind it."""
    from hostwright.standard.roles.workspaces.verbs import looking

    connection = ConnectionOptions(ask_become_pass, accept_new)
    return looking.show_url(Selection(host, tuple(inventory or ())), connection, name, token=token, as_json=json)


@task(
    name="exec",
    help=helps(
        *(name for name in _OF_ONE if name != "json"), host=_HOST, name=_NAME, command="what its shell shall run"
    ),
    iterable=["inventory"],
    auto_shortflags=False,
)
@ends
def exec_(
    c: Context,  # noqa: ARG001 - Invoke's
    name: str = "",
    command: str = "",
    host: str = "",
    inventory: list[str] | None = None,
    ask_become_pass: bool = False,
    accept_new: bool = False,
) -> int:
    """Run a command in a workspace, as its user, and end with its status."""
    from hostwright.standard.roles.workspaces.verbs import looking

    connection = ConnectionOptions(ask_become_pass, accept_new)
    return looking.run_in(
        Selection(host, tuple(inventory or ())), connection, name, lambda space: looking.exec_script(space, command)
    )


@task(
    help=helps(
        *("inventory", "vault_password_file", "ask_vault_password", "strict"),
        host=_HOST,
        name=_NAME,
        format="compose, compose-runtime (version 2.4), slurm or kubernetes",
        nodes="of a batch run for slurm or kubernetes: on how many hosts it trains together",
        storage="for kubernetes: the size of the claim that holds its files",
    ),
    iterable=["inventory"],
    auto_shortflags=False,
)
@ends
def export(
    c: Context,  # noqa: ARG001 - Invoke's
    name: str = "",
    format: str = "compose",
    host: str = "",
    nodes: int = 1,
    storage: str = "50Gi",
    inventory: list[str] | None = None,
) -> int:
    """Print a workspace as a Compose file, a Slurm script or Kubernetes manifests; no host is asked."""
    from hostwright.standard.roles.workspaces.verbs import exporting

    return exporting.export(Selection(host, tuple(inventory or ())), name, format, nodes=nodes, storage=storage)


namespace = Collection("workspace", up, down, list_, logs, url, exec_, export)
