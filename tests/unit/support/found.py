"""A host that was set up manually, as answers to the finders of all roles."""

from __future__ import annotations

from collections.abc import Mapping

from hostwright.audit.found.reading import finders_of
from hostwright.plan.model import Answer, Facts
from hostwright.plan.roles.role import discover
from hostwright.resources.packages.packages import DPKG

AT = "2026-11-29T02:00:00+00:00"
FINDERS = finders_of(discover())

#: the probe's output on Ubuntu 22.04 with NVIDIA's .run, toolkits from .run files, and Docker's own packages
HAND_MADE = """\
driver	loaded	550.54.15
driver	kernel	NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build
driver	library	550.54.15
driver	installer	/usr/bin/nvidia-installer
cuda	toolkit	/usr/local/cuda-11.8	11.8.89
cuda	toolkit	/usr/local/cuda-12.4	 "12.4.1"
cudnn	library	/usr/local/cuda-12.4/targets/x86_64-linux/lib	8.9.7
nccl	library	/usr/lib/x86_64-linux-gnu	2.21.5
/opt/torch/lib/python3.11/site-packages/torch-2.3.0+cu121.dist-info
/opt/torch/lib/python3.11/site-packages/nvidia_cudnn_cu12-8.9.2.26.dist-info
/opt/conda/envs/train/conda-meta/pytorch-2.2.0-py3.11_cuda12.1_cudnn8.9.2_0.json
/home/ann/.venv/lib/python3.10/site-packages/tensorflow-2.15.0.dist-info
"""
PACKAGES = {
    "docker-ce": "5:26.1.4-1~ubuntu.22.04~jammy",
    "docker-ce-cli": "5:26.1.4-1~ubuntu.22.04~jammy",
    "containerd.io": "1.6.33-1",
    "nvidia-container-toolkit": "1.15.0-1",
}


def facts_of(text: str = HAND_MADE, packages: Mapping[str, str] = PACKAGES) -> Facts:
    """The facts of a host whose probe printed this text, with these Debian packages."""
    rows = "".join(f"{name}\t{version}\tii \tamd64\t{name}\n" for name, version in packages.items())
    return Facts({FINDERS.probe: Answer(0, text), DPKG: Answer(0, rows)})
