"""Files of a Hostwright stack, copied for other tools, which have no stacks."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.places.hosts import LAB, TODAY, Hosts, Kind
from lab.machine import console

#: paths of configuration files on hosts with any stack
COMMON = (
    "/etc/apt/apt.conf.d/52hostwright",
    "/etc/apt/preferences.d/hostwright-no-other-driver",
    "/etc/modprobe.d/hostwright-nouveau.conf",
    "/etc/modules-load.d/hostwright-nvidia.conf",
    "/etc/systemd/system/nvidia-persistenced.service",
    "/etc/apt/sources.list.d/nvidia-container-toolkit.list",
    "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg",
    "/etc/systemd/system/hostwright-nvidia-dev-char.service",
    "/etc/docker/daemon.json",
)


@dataclass(frozen=True, slots=True)
class StackFiles:
    """Files of one stack for other tools, as names of artifacts and as paths on a provisioned host."""

    kind: Kind
    vendor: Mapping[str, str]  #: name of an artifact → name of the variable with the artifact's file for other tools
    #: paths of configuration files copied from a provisioned host, so that all tools install the same bytes
    texts: tuple[str, ...]

    def lay_out(self, hosts: Hosts, host: str, folder: Path) -> dict[str, str]:
        """Copy the stack's files, partly from ``host``, to ``folder``; return the variables that name them to other
        tools.
        """
        (machine,) = hosts.machines([host])
        for path in self.texts:
            (folder / Path(path).name).write_bytes(b64decode(console(machine, "base64", "-w0", path)))
        variables = {"files": str(folder)}
        for artifact, file in mirrored(hosts.hostwright("mirror", "--stack", self.kind.stack, "--json")).items():
            if artifact in self.vendor or file.suffix == ".whl":
                (folder / file.name).symlink_to(file)
            if artifact in self.vendor:
                variables[self.vendor[artifact]] = file.name
        return variables


TENSORFLOW = StackFiles(
    LAB,
    {
        "driver": "runfile",
        "cuda-repository": "deb",
        "cuda-pin": "pin",
        "cudnn": "cudnn",
        "wheelhouse-3.9": "wheels",
    },
    (
        *COMMON,
        "/etc/apt/sources.list.d/cuda-ubuntu2004-11-2-local.list",
        "/etc/ld.so.conf.d/cuda-11-2.conf",
        "/etc/profile.d/cuda.sh",
        "/usr/local/lib/hostwright/cuda-command",
        "/opt/tensorflow-2.9/constraints.txt",
    ),
)
PYTORCH = StackFiles(TODAY, {"driver": "runfile"}, (*COMMON, "/opt/pytorch-2.14/constraints.txt"))


def mirrored(document: str) -> Mapping[str, Path]:
    """Return artifact name → path of its file, from ``document``, the output of ``hostwright mirror --json``."""
    return {file["name"]: Path(file["path"]) for file in json.loads(document)["files"]}
