"""PyTorch's proofs in the engine, and findings in their measurements."""

from __future__ import annotations

import pytest

from hostwright.plan.roles.role import RoleContext
from hostwright.prove.model import CPU, Proof, ProofFinding
from hostwright.resources.python.environments import EnvironmentVariables
from hostwright.standard.roles.pytorch import pytorch
from tests.unit.roles.tensorflow.proofs.measuring import (
    ONE_GPU,
    OTHER_T4,
    T4,
    TWO_GPUS,
    WITHOUT,
    Rows,
    measured,
    severities,
)
from tests.unit.support.stacks import load_stack

ALL = "all GPUs (2 × Tesla T4)"
PRODUCTS: Rows = {
    **{("gpu", device): "Tesla T4" for device in (T4, OTHER_T4)},
    **{(f"product in {name}", device): 0.0 for name in ("fp32", "bf16", "fp8") for device in (T4, OTHER_T4)},
    ("product in fp32", CPU): 0.0,
    ("fp32", CPU): 1.2,
    **{("bf16", device): 271.0 for device in (T4, OTHER_T4)},
    **{("share of bf16", device): 86.9 for device in (T4, OTHER_T4)},
    **{("memory copy", device): 1800.0 for device in (T4, OTHER_T4)},
    **{("share of memory copy", device): 88.3 for device in (T4, OTHER_T4)},
}
COMPILED: Rows = {(name, device): 3e-7 for name in ("compiled", "compiled gradient") for device in (CPU, T4)} | {
    ("gpu", T4): "Tesla T4"
}
TOGETHER: Rows = {
    ("devices", ALL): 2.0,
    ("wrong sums", ALL): 0.0,
    ("all-reduce", ALL): 21.0,
    ("loss beside one device", ALL): 1e-7,
    ("learned beside one device", ALL): 4e-7,
    ("learned beside numpy", ALL): 5e-7,
}


def of(stack: str = "pytorch-2.14") -> dict[str, Proof]:
    part = pytorch.part("proofs")
    assert part is not None
    ctx = RoleContext(load_stack(stack), roles=((pytorch, EnvironmentVariables()),))
    return {proof.name: proof for proof in part.proofs(EnvironmentVariables(path="/opt/pt"), ctx)}


def judged(name: str, rows: Rows, expected=TWO_GPUS) -> tuple[ProofFinding, ...]:
    return of()[name].judge(measured(rows), expected)


def test_each_runs_with_the_environments_python_and_also_without_a_gpu() -> None:
    proofs = of()
    assert list(proofs) == ["devices", "products", "compile", "training", "workers"]
    assert {proof.program.interpreter for proof in proofs.values()} == {("/opt/pt/bin/python",)}
    assert not any(proof.needs_gpu for proof in proofs.values())
    assert [name for name, proof in proofs.items() if proof.level == "quick"] == ["devices", "products"]
    assert [name for name, proof in proofs.items() if proof.hosts > 1] == ["workers"]


@pytest.mark.parametrize(
    ("stack", "versions"),
    [
        ("pytorch-2.14", {"pytorch": "2.14.1", "built for cuda": "13.0", "cudnn": "9.24.0", "nccl": "2.30.7"}),
        ("pytorch-2.10", {"pytorch": "2.10.0", "built for cuda": "12.8", "cudnn": "9.10.2", "nccl": "2.27.5"}),
    ],
)
def test_the_versions_are_those_of_the_wheels_that_the_stack_pins(stack: str, versions: dict[str, str]) -> None:
    rows: Rows = {(name, CPU): value for name, value in versions.items()}
    rows |= {("product", CPU): 0.0, ("convolution", CPU): 0.0}
    judge = of(stack)["devices"].judge
    assert judge(measured(rows), WITHOUT) == ()
    for name, version in versions.items():
        (finding,) = judge(measured({**rows, (name, CPU): "none"}), WITHOUT)
        assert (finding.measured, finding.expected) == ("none", version)


def test_sound_figures_have_no_finding() -> None:
    assert judged("products", PRODUCTS) == ()
    assert judged("compile", COMPILED, ONE_GPU) == ()
    assert judged("training", TOGETHER) == ()
    assert judged("workers", TOGETHER) == ()
    assert judged("products", {("product in fp32", CPU): 0.0, ("fp32", CPU): 1.0, ("bf16", ""): None}, WITHOUT) == ()


@pytest.mark.parametrize(
    ("rows", "severity", "words"),
    [
        (
            {("share of bf16", T4): 28.0},
            "failed",
            "bf16 reaches 28 % of the rate in the GPU's data sheet; check clocks",
        ),
        (
            {("share of memory copy", T4): 41.0},
            "failed",
            "memory copy reaches 41 % of the rate in the GPU's data sheet",
        ),
        ({("share of bf16", T4): "x"}, "failed", "bf16 reaches x of the rate in the GPU's data sheet"),
        ({("product in fp8", T4): 0.5}, "failed", "the matrix product in fp8 differs too much from its reference"),
        (
            {("product in fp8", T4): "RuntimeError: no"},
            "failed",
            "the matrix product in fp8 could not be computed: RuntimeError",
        ),
        (
            {("bf16", T4): "OutOfMemoryError: CUDA out of memory."},
            "failed",
            "matrix products in bf16 could not be timed: Out",
        ),
        ({("bf16", T4): 200.0}, "outlier", "bf16: 200. This is 26% slower than the host's other cards"),
    ],
)
def test_a_card_that_is_slow_or_wrong_is_found(rows: Rows, severity: str, words: str) -> None:
    (finding,) = judged("products", {**PRODUCTS, **rows})
    assert (finding.severity, finding.device) == (severity, T4)
    assert finding.sentence.startswith(words)


def test_a_card_that_is_missing_is_missed_by_each_proof() -> None:
    one = {key: value for key, value in PRODUCTS.items() if key[1] != OTHER_T4}
    assert set(severities(judged("products", one))) == {("failed", OTHER_T4)}
    assert set(severities(judged("compile", COMPILED))) == {("failed", OTHER_T4)}
    (finding,) = judged("training", {**TOGETHER, ("devices", ALL): 1.0})
    assert finding.sentence == "joint training did not use all cards"
    without = {(name, CPU): value for (name, _), value in TOGETHER.items()}
    assert severities(judged("training", without)) == [("failed", CPU)]
    assert judged("training", without, WITHOUT) == ()


@pytest.mark.parametrize(
    "name", ["wrong sums", "loss beside one device", "learned beside one device", "learned beside numpy"]
)
def test_what_was_computed_together_and_is_wrong_fails(name: str) -> None:
    for proof in ("training", "workers"):
        assert severities(judged(proof, {**TOGETHER, (name, ALL): 3.0})) == [("failed", ALL)]


@pytest.mark.parametrize("name", ["compiled", "compiled gradient"])
def test_what_the_compiler_changes_is_found(name: str) -> None:
    assert severities(judged("compile", {**COMPILED, (name, T4): 0.02}, ONE_GPU)) == [("failed", T4)]


@pytest.mark.parametrize("name", ["products", "compile", "training", "workers", "devices"])
def test_a_program_that_compared_nothing_never_passes(name: str) -> None:
    assert {one.severity for one in judged(name, {}, WITHOUT)} == {"failed"}
