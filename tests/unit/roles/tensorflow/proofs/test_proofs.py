"""TensorFlow's proofs in the engine."""

from __future__ import annotations

from hostwright.plan.roles.role import RoleContext
from hostwright.resources.python.environments import EnvironmentVariables
from hostwright.standard.roles.cuda import Cuda, cuda
from hostwright.standard.roles.cudnn import Cudnn, cudnn
from hostwright.standard.roles.tensorflow import tensorflow
from tests.unit.roles.tensorflow.proofs.measuring import WITHOUT, measured
from tests.unit.roles.tensorflow.proofs.test_installed import ON_CPU
from tests.unit.support.stacks import load_stack

STACK = load_stack("tensorflow-2.9")


def of(*roles):
    part = tensorflow.part("proofs")
    assert part is not None
    ctx = RoleContext(STACK, roles=((tensorflow, EnvironmentVariables()), *roles))
    return {proof.name: proof for proof in part.proofs(EnvironmentVariables(path="/opt/tf"), ctx)}


def test_each_runs_with_the_environments_python_and_also_without_a_gpu() -> None:
    proofs = of()
    assert list(proofs) == ["devices", "dense", "convolutional", "gains", "formats", "input", "mirrored", "workers"]
    assert {proof.program.interpreter for proof in proofs.values()} == {("/opt/tf/bin/python",)}
    assert not any(proof.needs_gpu for proof in proofs.values())
    assert [name for name, proof in proofs.items() if proof.level == "quick"] == ["devices", "dense"]
    assert [name for name, proof in proofs.items() if proof.hosts > 1] == ["workers"]


def test_the_benchmark_is_that_of_the_articles() -> None:
    arguments = of()["dense"].program.arguments
    assert (arguments["network"], arguments["samples"], arguments["cpu_samples"]) == ("dense", 60_000, 60_000)


def test_cuda_is_judged_where_the_host_has_its_role() -> None:
    rows = {**ON_CPU, ("ptxas", "cpu"): ""}
    assert of()["devices"].judge(measured(rows), WITHOUT) == ()
    with_cuda = of((cuda, Cuda()), (cudnn, Cudnn()))["devices"]
    assert with_cuda.program.arguments["toolkit"] == "/usr/local/cuda-11.2"
    (finding,) = with_cuda.judge(measured(rows), WITHOUT)
    assert "ptxas is missing" in finding.sentence
    assert with_cuda.judge(measured(ON_CPU), WITHOUT) == ()
