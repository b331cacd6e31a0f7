"""Proofs (tests on a host) of TensorFlow: correct results on one device and on several, and speed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hostwright.proofs import Expected, Level, Measurements, Program, Proof, ProofFinding
from hostwright.resources import EnvironmentVariables
from hostwright.roles import RoleContext
from hostwright.standard.roles.base.proofs.sources import python_source
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.cudnn.section import CudnnSection
from hostwright.standard.roles.tensorflow.proofs import judging
from hostwright.standard.roles.tensorflow.proofs.installed import TensorflowJudge
from hostwright.standard.roles.tensorflow.section import TensorflowSection

Judge = Callable[[Measurements, Expected], tuple[ProofFinding, ...]]

LAYER = "tensorflow"
SAMPLES = 60_000  #: number of images that a model is trained with on a GPU
CPU_IMAGES = 6_000  #: number of images for a training on the CPU, which is about ten times slower than a GPU
#: time limit in seconds of a proof on GPUs for which the driver compiles TensorFlow's kernels
WITH_COMPILING_S = 2400.0
PORT = 29471  #: TCP port of TensorFlow's workers during a proof, unassigned in IANA's registry


def proofs(variables: EnvironmentVariables, ctx: RoleContext) -> tuple[Proof, ...]:
    """Return TensorFlow's proofs, beginning with the level ``quick`` (devices and a dense network)."""
    wanted = ctx.section(TensorflowSection)
    cuda, cudnn = ctx.find(CudaSection), ctx.find(CudnnSection)
    toolkit = cuda.prefix if cuda else ""
    library = cudnn.library_version if cudnn else ""
    installed = TensorflowJudge(wanted.version, cuda.version if cuda else "", toolkit, library)

    python = (f"{wanted.home(variables.path)}/bin/python",)
    workers = Program(
        "workers.py",
        python_source(__file__, "workers.py"),
        python,
        {"steps": 20, "port": PORT, "start_limit_s": 300, "step_limit_s": 60},
    )
    return (
        *of_one_host(LAYER, python, installed),
        Proof("workers", LAYER, workers, judging.workers, "full", WITH_COMPILING_S, needs_gpu=False, hosts=2),
    )


def of_one_host(
    layer: str, interpreter: tuple[str, ...], installed: TensorflowJudge, *, name: str = "{}", quickest: Level = "quick"
) -> tuple[Proof, ...]:
    """Return the proofs that need only one host. ``interpreter``: command that runs Python files.

    ``name``: format of the proofs' names. ``quickest``: level of proofs that take a minute or two.
    """

    def proof(of: str, file: str, judge: Judge, level: Level = "full", **arguments: Any) -> Proof:
        program = Program(file, python_source(__file__, file), interpreter, arguments)
        return Proof(name.format(of), layer, program, judge, level, WITH_COMPILING_S, needs_gpu=False)

    dense, convolutional = _sizes("dense", SAMPLES), _sizes("convolutional", CPU_IMAGES)
    return (
        proof("devices", "devices.py", installed.judge, quickest, toolkit=installed.toolkit),
        proof("dense", "benchmark.py", judging.dense, quickest, **dense),
        proof("convolutional", "benchmark.py", judging.benchmark, **convolutional),
        proof("gains", "gains.py", judging.gains, batch=64, steps=100, cpu_batch=2, cpu_steps=5),
        proof("formats", "formats.py", judging.formats, samples=2000),
        proof("input", "input.py", judging.feeding, megabytes=2000, batch=32, cpu_batch=8, seconds=15),
        proof("mirrored", "mirrored.py", judging.mirrored, steps=20, seconds=20),
    )


def _sizes(network: str, cpu_samples: int) -> Mapping[str, Any]:
    return {"network": network, "samples": SAMPLES, "cpu_samples": cpu_samples, "epochs": 5}
