"""Implementation of ``workspace.export``: a workspace in another system's format."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from hostwright.cli.verb import Request, console
from hostwright.roles import InputError, printable, suggestion
from hostwright.standard.roles.workspaces.declared.workspace import Workspace
from hostwright.standard.roles.workspaces.export.compose import compose, compose_runtime
from hostwright.standard.roles.workspaces.export.inside import hosts_checked
from hostwright.standard.roles.workspaces.export.kubernetes import dns_name, kubernetes
from hostwright.standard.roles.workspaces.export.slurm import slurm
from hostwright.standard.roles.workspaces.verbs.queries import one_workspace


def export(request: Request, name: str, form: str, *, nodes: int = 1, storage: str = "50Gi") -> int:
    """Print the workspace ``name`` in the format ``form``, without contacting a host.

    ``form`` is ``compose``, ``compose-runtime``, ``slurm`` or ``kubernetes``.
    """
    forms: dict[str, Callable[[Workspace], str]] = {
        "compose": compose,
        "compose-runtime": compose_runtime,
        "slurm": lambda space: slurm(space, nodes),
        "kubernetes": lambda space: kubernetes(space, nodes, storage),
    }
    if form not in forms:
        raise InputError(f"unknown format {form!r}; {suggestion(form, forms)}", "--format")
    _, space = one_workspace(request, name)
    if nodes != 1 and form.startswith("compose"):
        raise InputError("a Compose file is for one host; remove --nodes", "--nodes")
    hosts_checked(space, nodes)
    text = forms[form](space)
    cautions = list(space.entry.cautions(name)) if form != "slurm" else []
    if form == "kubernetes" and dns_name(name) != name:
        why = "Kubernetes names start with a letter and do not end with a hyphen"
        cautions.append(f"{name} is named {dns_name(name)} there: {why}")
    for line in cautions:
        console.make_console(stderr=True).print(Text(printable(line)))
    print(text, end="")
    return 0
