"""Commands that run workspaces outside Hostwright's hosts, without token, proxy and queue."""

from __future__ import annotations

from hostwright.roles import InputError
from hostwright.standard.roles.workspaces.declared.entries import MOST_WORD_BYTES
from hostwright.standard.roles.workspaces.declared.forms import HOME
from hostwright.standard.roles.workspaces.declared.gpus import is_mig
from hostwright.standard.roles.workspaces.declared.workspace import Workspace

#: kind of workspace → port of the program in the container
PORTS = {"jupyter": 8888, "tensorboard": 6006}


def command_inside(workspace: Workspace) -> tuple[str, ...]:
    """Return the command of ``workspace`` with arguments, for a container in another system.

    Jupyter generates and prints a token. Raises ``InputError`` for a script that is too long for one argument.
    """
    entry = workspace.entry
    port = str(PORTS.get(entry.kind, 0))
    if entry.kind == "jupyter":
        return ("jupyter", "notebook", "--ip=0.0.0.0", f"--port={port}", "--no-browser", f"--notebook-dir={HOME}")
    if entry.kind == "tensorboard":
        return ("tensorboard", f"--logdir={entry.log_directory}", "--host=0.0.0.0", f"--port={port}")
    if (size := len(entry.script.encode())) > MOST_WORD_BYTES:
        raise InputError(
            f"{workspace.name} has a script of {size:,} bytes. An export passes the script as one argument, "
            f"which Linux limits to {MOST_WORD_BYTES:,} bytes; put the script into the workspace's files, and "
            "start it from there"
        )
    return entry.command or _script(entry.script)


def _script(text: str) -> tuple[str, ...]:
    if not text.startswith("#!"):
        return ("/bin/sh", "-c", text, "script")
    write = 'file=$(mktemp) && printf %s "$1" >"$file" && shift && exec "$@" "$file"'
    return ("/bin/sh", "-c", write, "script", text, *text[2:].partition("\n")[0].strip().split(None, 1))


def hosts_checked(workspace: Workspace, hosts: int) -> None:
    """Raise ``InputError`` if ``workspace`` cannot run on ``hosts`` hosts, or is a model server."""
    if workspace.entry.kind == "serving":
        raise InputError(
            f"{workspace.name} is a model server, whose versions are managed on its host; it cannot be exported"
        )
    if hosts < 1:
        raise InputError(f"expected at least one host for the workspace, found {hosts}")
    if hosts > 1 and workspace.entry.kind != "batch":
        raise InputError(
            f"{workspace.name} has the kind {workspace.entry.kind}; only batch workspaces run on several hosts"
        )
    if hosts > 1 and "TF_CONFIG" in workspace.entry.environment:
        raise InputError(
            f"the environment of {workspace.name} sets TF_CONFIG, which an export for several hosts sets for "
            "each host; remove it from the environment, then export"
        )


def cards_checked(workspace: Workspace) -> None:
    """Raise ``InputError`` if ``workspace`` uses a MIG device, because clusters assign MIG devices by profile."""
    part = next(filter(is_mig, workspace.entry.gpus), None)
    if part is not None:
        raise InputError(
            f"{workspace.name} uses the MIG device {part}. Clusters assign MIG devices by profile, such as "
            "3g.20gb, but the inventory has no profile; set a whole GPU in the inventory, export the workspace, and "
            "write the profile into the exported file"
        )
