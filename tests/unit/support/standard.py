"""A target host for each standard stack, with the inventory's variables, and hosts with further options."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import yaml

from hostwright.fleet import Fleet, TargetHost
from hostwright.stack.stackfile import stack_names
from tests.places import INVENTORY

#: variables for optional states of roles
SWITCHED = {
    "hostwright_roles": ["base", "driver", "cuda", "cudnn", "environment", "tensorflow", "container", "selfaudit"],
    "cuda_keep_repository": False,
    "container_default_runtime": True,
}
#: layers that a host must list explicitly
OPTIONAL = {
    "stack": "tensorflow-2.9-nccl-tensorrt",
    "hostwright_roles": ["base", "driver", "cuda", "cudnn", "environment", "tensorflow", "nccl", "tensorrt"],
}


@cache
def targets() -> tuple[TargetHost, ...]:
    """The hosts, named after their stacks, ``switched`` and ``optional``."""
    names = [name for name in stack_names([INVENTORY / "stacks"]) if not name.startswith("lab")]
    hosts: dict[str, dict[str, object]] = {name: {"stack": name} for name in names}
    hosts["switched"] = SWITCHED
    hosts["optional"] = OPTIONAL
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
        return Fleet.load(Path(folder)).targets("all")
