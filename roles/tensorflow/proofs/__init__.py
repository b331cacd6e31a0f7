"""Proofs of TensorFlow: that it computes rightly on every device, alone and together, and how fast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hostwright.plan.roles.role import Wanted
from hostwright.prove.model import Program, Proof
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.cudnn.section import CudnnSection
from hostwright.standard.roles.tensorflow import Tensorflow
from hostwright.standard.roles.tensorflow.proofs import judging
from hostwright.standard.roles.tensorflow.proofs.installed import TensorflowJudge
from hostwright.standard.roles.tensorflow.proofs.sending import program_text
from hostwright.standard.roles.tensorflow.section import TensorflowSection

LAYER = "tensorflow"
SAMPLES = 60_000  #: as in the articles about this stack
#: what a processor trains of the convolutional network, which takes it about ten times as long
CPU_IMAGES = 6_000
#: the first computation on a card of Ampere or later compiles TensorFlow's kernels, for many minutes
WITH_COMPILING_S = 2400.0
#: TensorFlow's hosts meet on this port while a proof over several hosts runs; it is nobody's in IANA's registry
PORT = 29471


def proofs(variables: Tensorflow, host: Wanted) -> tuple[Proof, ...]:
    """The quick ones first: what is found on the host, and the articles' benchmark."""
    wanted = host.section(TensorflowSection)
    cuda, cudnn = host.find(CudaSection), host.find(CudnnSection)
    toolkit = cuda.prefix if cuda else ""
    library = cudnn.library_version if cudnn else ""
    installed = TensorflowJudge(wanted.version, cuda.version if cuda else "", toolkit, library)

    def program(file: str, **arguments: Any) -> Program:
        return Program(file, program_text(file), (f"{wanted.home(variables.path)}/bin/python",), arguments)

    def proof(name: str, judge: Any, runs: Program, **limits: Any) -> Proof:
        return Proof(name, LAYER, runs, judge, **{"time_limit_s": WITH_COMPILING_S, "needs_gpu": False, **limits})

    return (
        proof("devices", installed.judge, program("devices.py", toolkit=toolkit), level="quick"),
        proof("dense", judging.dense, program("benchmark.py", **_sizes("dense", SAMPLES)), level="quick"),
        proof("convolutional", judging.benchmark, program("benchmark.py", **_sizes("convolutional", CPU_IMAGES))),
        proof("gains", judging.gains, program("gains.py", batch=64, steps=100, cpu_batch=2, cpu_steps=5)),
        proof("formats", judging.formats, program("formats.py", samples=2000)),
        proof("mirrored", judging.mirrored, program("mirrored.py", steps=20, seconds=20)),
        proof(
            "workers",
            judging.workers,
            program("workers.py", steps=20, port=PORT, start_limit_s=300, step_limit_s=60),
            hosts=2,
        ),
    )


def _sizes(network: str, cpu_samples: int) -> Mapping[str, Any]:
    return {"network": network, "samples": SAMPLES, "cpu_samples": cpu_samples, "epochs": 5}
