"""What a workspace runs in its image where nothing of the host's is at hand: no token, no proxy, no queue."""

from __future__ import annotations

from hostwright.roles import InputError
from hostwright.standard.roles.workspaces.declared.entries import MOST_WORD_BYTES
from hostwright.standard.roles.workspaces.declared.forms import HOME
from hostwright.standard.roles.workspaces.declared.gpus import is_mig
from hostwright.standard.roles.workspaces.declared.workspace import Workspace

#: Ports inside a container: those of the programs' own documentation.
PORTS = {"jupyter": 8888, "tensorboard": 6006}


def command_inside(workspace: Workspace) -> tuple[str, ...]:
    """The words of the command. Jupyter makes a token of its own there, and prints it.

    Raises ``InputError`` for a script that is too long for a word, as which it is handed over where no file is at hand.
    """
    entry = workspace.entry
    port = str(PORTS.get(entry.kind, 0))
    if entry.kind == "jupyter":
        return ("jupyter", "notebook", "--ip=0.0.0.0", f"--port={port}", "--no-browser", f"--notebook-dir={HOME}")
    if entry.kind == "tensorboard":
        return ("tensorboard", f"--logdir={entry.log_directory}", "--host=0.0.0.0", f"--port={port}")
    if (size := len(entry.script.encode())) > MOST_WORD_BYTES:
        raise InputError(
            f"{workspace.name} has a script of {size:,} bytes, and an export hands it over as one argument, which "
            f"Linux takes up to {MOST_WORD_BYTES:,}: put it among the workspace's files, and start it from there"
        )
    return entry.command or _script(entry.script)


def _script(text: str) -> tuple[str, ...]:
    """A script as its host runs it: /bin/sh reads it, or the program that its first line names reads a file with it."""
    if not text.startswith("#!"):
        return ("/bin/sh", "-c", text, "script")
    write = 'file=$(mktemp) && printf %s "$1" >"$file" && shift && exec "$@" "$file"'
    return ("/bin/sh", "-c", write, "script", text, *text[2:].partition("\n")[0].strip().split(None, 1))


def hosts_checked(workspace: Workspace, hosts: int) -> None:
    """Raise ``InputError`` for a number of hosts that makes no sense for this workspace."""
    if workspace.entry.kind == "serving":
        raise InputError(
            f"{workspace.name} is a model server, whose versions are brought to its host and switched there: it has no "
            "other form"
        )
    if hosts < 1:
        raise InputError(f"a workspace runs on at least one host, not on {hosts}")
    if hosts > 1 and workspace.entry.kind != "batch":
        raise InputError(f"{workspace.name} is a {workspace.entry.kind} workspace: only batch runs on several hosts")
    if hosts > 1 and "TF_CONFIG" in workspace.entry.environment:
        raise InputError(
            f"{workspace.name} has a TF_CONFIG in its environment, and each of several hosts gets one of its own, "
            "which says who the others are: take it out of the environment, and export it then"
        )


def cards_checked(workspace: Workspace) -> None:
    """Raise ``InputError`` for a MIG device: a cluster gives them by their profile, which a UUID does not say."""
    part = next(filter(is_mig, workspace.entry.gpus), None)
    if part is not None:
        raise InputError(
            f"{workspace.name} has the MIG device {part}, and a cluster gives MIG devices by their profile, such as "
            "3g.20gb, which the inventory does not know: export it with a whole GPU, and name the profile there"
        )
