"""Proofs (tests on a host) of PyTorch: correct results on one device and on several, and speed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hostwright.proofs import Expected, Level, Measurements, Program, Proof, ProofFinding
from hostwright.resources import EnvironmentVariables
from hostwright.roles import RoleContext
from hostwright.standard.roles.base.proofs.sources import python_source
from hostwright.standard.roles.cuda.proofs.datasheets import by_pci_id
from hostwright.standard.roles.cuda.proofs.frameworks import DevicesJudge
from hostwright.standard.roles.cuda.wheels import major_of, pins_of
from hostwright.standard.roles.pytorch.proofs import judging
from hostwright.standard.roles.pytorch.rules import row_of
from hostwright.standard.roles.pytorch.section import PytorchSection

Judge = Callable[[Measurements, Expected], tuple[ProofFinding, ...]]

LIMIT_S = 1200.0  #: time limit in seconds of a proof with eight GPUs and a busy CPU (our choice)
#: TCP ports of a proof over several hosts, unassigned in IANA's registry. ``MEETING_PORT`` is for torchrun.
PORT, MEETING_PORT = 29473, 29474
TOGETHER: Mapping[str, Any] = {"steps": 20, "start_limit_s": 300, "step_limit_s": 60}
OVER_HOSTS: Mapping[str, Any] = {**TOGETHER, "port": PORT, "meeting_port": MEETING_PORT}
#: options of the measured matrix products. An FP8 product takes half a millisecond on the largest GPU.
PRODUCTS: Mapping[str, Any] = {"size": 8192, "cpu_size": 2048, "bytes": 1 << 30, "seconds": 2}


def proofs(variables: EnvironmentVariables, ctx: RoleContext) -> tuple[Proof, ...]:
    """Return PyTorch's proofs, beginning with the level ``quick`` (devices and speed)."""
    section = ctx.section(PytorchSection)
    python = (f"{section.home(variables.path)}/bin/python",)

    def proof(name: str, file: str, judge: Judge, *, quick: bool = False, hosts: int = 1, **arguments: Any) -> Proof:
        program = Program(file, python_source(__file__, file), python, arguments)
        level: Level = "quick" if quick else "full"
        return Proof(name, "pytorch", program, judge, level, LIMIT_S, needs_gpu=False, hosts=hosts)

    devices = DevicesJudge(judging.TITLE, wanted(section)).judge
    return (
        proof("devices", "devices.py", devices, quick=True),
        proof("products", "products.py", judging.products, quick=True, **PRODUCTS, datasheets=by_pci_id()),
        proof("compile", "compiled.py", judging.compiled),
        proof("training", "training.py", judging.training, **TOGETHER),
        proof("workers", "training.py", judging.workers, hosts=2, **OVER_HOSTS),
    )


def wanted(section: PytorchSection) -> Mapping[str, tuple[str, str]]:
    """Return measurement → subject of a finding and the stack's version, for PyTorch, cuDNN, NCCL and CUDA."""
    # PyTorch reports versions without the local part, such as +cu126.
    found = {"pytorch": ("version of PyTorch", section.version.partition("+")[0])}
    row, major, pins = row_of(section.version), major_of(section), pins_of(section)
    if row and row.cuda.partition(".")[0] == major:
        found["built for cuda"] = ("PyTorch is built for CUDA", row.cuda)
    for name, title in (("cudnn", "cuDNN"), ("nccl", "NCCL")):
        if pin := pins.get(f"nvidia-{name}-cu{major}"):
            found[name] = (f"version of {title}", ".".join(pin.split(".")[:3]))
    return found
