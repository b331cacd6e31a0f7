"""A workspace as a batch script of Slurm, whose command runs in the same image with Apptainer."""

from __future__ import annotations

import math

from hostwright.roles import InputError, render, words
from hostwright.standard.roles.workspaces.declared.forms import HOME, bytes_of
from hostwright.standard.roles.workspaces.declared.workspace import Workspace
from hostwright.standard.roles.workspaces.export.inside import PORTS, cards_checked, command_inside, hosts_checked

MIB = 2**20


def slurm(workspace: Workspace, hosts: int = 1) -> str:
    """The text of the script, for ``sbatch``. ``hosts`` is the number of hosts on which a batch workspace trains
    together: each gets the same GPUs, CPUs and memory, and its part in ``TF_CONFIG``.

    The script asks for what sbatch(1) names: ``--gpus-per-node``, ``--cpus-per-task``, ``--mem`` in MiB. A workspace
    without a limit of memory gets the partition's default. Raises ``InputError`` for a kind that is no work of a
    cluster's.
    """
    entry = workspace.entry
    if entry.kind == "ssh":
        raise InputError(
            f"{workspace.name} is an ssh box, and a Slurm cluster has logins of its own: use `srun --pty bash` there"
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
