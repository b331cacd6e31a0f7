"""A host installed by hand: the commands of articles about this stack, run by the host's own user.

The commands are not improved. Left out are parts that a lab host lacks (the console's own screen, the reboot after the
driver); the files are already present instead of downloaded.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass

from hostwright.stack.stack import Stack
from hostwright.stack.store.artifacts import Store
from lab.config import USER, Machine
from lab.machine import exec_in

FILES = ("driver", "cuda-repository", "cudnn")  #: artifacts of the stack that the articles download
CUDA = "/usr/local/cuda-11.2"
OUTPUT_CHARACTERS = 2000  #: maximum output in the error about a failed command


@dataclass(frozen=True, slots=True)
class Typed:
    """One command of an article, which must succeed with output that matches ``says`` (a regex)."""

    line: str
    says: str = ""
    status: int = 0


BUILD_TOOLS = (
    Typed("sudo apt-get update"),
    Typed("sudo apt-get install -y build-essential linux-headers-$(uname -r)"),
)

DRIVER = (
    Typed("chmod +x NVIDIA-Linux-x86_64-470.182.03.run"),
    Typed("sudo ./NVIDIA-Linux-x86_64-470.182.03.run --silent"),  # the effect of Enter at each of its questions
    Typed("nvidia-smi", "470.182.03"),
)

TOOLKIT = (
    Typed("sudo dpkg -i cuda-repo-ubuntu2004-11-2-local_11.2.2-460.32.03-1_amd64.deb"),
    Typed("sudo apt-key add /var/cuda-repo-ubuntu2004-11-2-local/7fa2af80.pub", "OK"),
    Typed("sudo apt-get update"),
    Typed("sudo apt-get install -y cuda-11-2", "nvidia-driver-460"),
    Typed(f"echo 'export PATH={CUDA}/bin${{PATH:+:${{PATH}}}}' >>~/.bashrc"),
    Typed(f"echo 'export LD_LIBRARY_PATH={CUDA}/lib64${{LD_LIBRARY_PATH:+:${{LD_LIBRARY_PATH}}}}' >>~/.bashrc"),
    Typed("bash -ic 'nvcc --version'", r"release 11\.2"),
)

CUDNN = (
    Typed("tar -xzvf cudnn-11.2-linux-x64-v8.1.0.77.tgz"),
    Typed("sudo cp cuda/include/cudnn*.h /usr/local/cuda/include"),
    Typed("sudo cp cuda/lib64/libcudnn* /usr/local/cuda/lib64"),  # no -P: each link becomes a copy
    Typed("sudo chmod a+r /usr/local/cuda/include/cudnn*.h /usr/local/cuda/lib64/libcudnn*"),
)

TENSORFLOW = (
    Typed("pip3 install tensorflow==2.9.0", "Successfully installed .*numpy-2"),
    # Not in the articles: the import fails with the NumPy that pip installs today.
    Typed("bash -ic 'python3 -c \"import tensorflow\"'", r"compiled using NumPy 1\.x cannot be run in", status=1),
)

NVIDIA_DOCKER = """\
deb https://nvidia.github.io/libnvidia-container/stable/ubuntu18.04/amd64 /
#deb https://nvidia.github.io/libnvidia-container/experimental/ubuntu18.04/amd64 /
deb https://nvidia.github.io/nvidia-container-runtime/stable/ubuntu18.04/amd64 /
deb https://nvidia.github.io/nvidia-docker/ubuntu18.04/amd64 /
"""

CONTAINERS = (
    Typed("sudo apt-get install -y docker.io"),
    # The article downloads this list with curl; a lab host cannot reach it.
    Typed(f"sudo tee /etc/apt/sources.list.d/nvidia-docker.list <<'END'\n{NVIDIA_DOCKER}END"),
)

ARTICLE = (*BUILD_TOOLS, *DRIVER, *TOOLKIT, *CUDNN, *TENSORFLOW, *CONTAINERS)


def download(machine: Machine, stack: Stack) -> None:
    """Copy the files that the articles download to the user's home."""
    store, home = Store.default(), machine.merged / "home" / USER
    owner = home.stat()
    for name in FILES:
        copy = shutil.copy(store.locate(stack.artifact(name)), home)
        os.chown(copy, owner.st_uid, owner.st_gid)


def type_all(machine: Machine, lines: Iterable[Typed]) -> None:
    """Run the commands in order as the host's user. Raises ``AssertionError`` for an unexpected result."""
    for one in lines:
        done = exec_in(machine, ["runuser", "--login", USER, "--command", one.line])
        said = f"{done.stdout}{done.stderr}"
        as_told = done.returncode == one.status and re.search(one.says, said)
        assert as_told, f"{one.line}\nended with status {done.returncode}:\n{said[-OUTPUT_CHARACTERS:]}"
