"""Export of a workspace as a Slurm batch script that runs the same image with Apptainer."""

from __future__ import annotations

import math

from hostwright.roles import InputError, render, words
from hostwright.standard.roles.workspaces.declared.forms import HOME, bytes_of
from hostwright.standard.roles.workspaces.declared.workspace import Workspace
from hostwright.standard.roles.workspaces.export.inside import PORTS, cards_checked, command_inside, hosts_checked

MIB = 2**20


def slurm(workspace: Workspace, hosts: int = 1) -> str:
    """Return ``workspace`` as a script for ``sbatch``, with options of sbatch(1).

    ``hosts``: number of hosts of a batch workspace's distributed training, each with the same GPUs, CPUs and memory.
    Without a memory limit, the partition's default applies. Raises ``InputError`` for the SSH container of a user, a
    model server, a MIG device, or an invalid ``hosts``.
    """
    entry = workspace.entry
    if entry.kind == "ssh":
        raise InputError(
            f"{workspace.name} is an SSH box, but a Slurm cluster has its own logins; use `srun --pty bash` there"
        )
    hosts_checked(workspace, hosts)
    cards_checked(workspace)
    return render(
        "workspaces/slurm.sh.j2",
        workspace=workspace,
        hosts=hosts,
        gpus=len(entry.gpus),
        cpus=math.ceil(entry.cpus) if entry.cpus else None,
        mebibytes=bytes_of(entry.memory) // MIB if entry.memory else None,
        home=HOME,
        port=PORTS.get(entry.kind),
        image=words((f"docker://{entry.image}",)),
        command=words(command_inside(workspace)),
        variables=[words((f"APPTAINERENV_{name}={value}",)) for name, value in entry.variables.items()],
    )
