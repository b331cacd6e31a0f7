"""JAX's proofs in the engine, and findings in their measurements."""

from __future__ import annotations

from hostwright.plan.roles.role import RoleContext
from hostwright.prove.model import CPU, Proof
from hostwright.resources.python.environments import EnvironmentVariables
from hostwright.standard.roles.jax import jax
from tests.unit.roles.tensorflow.proofs.measuring import ONE_GPU, T4, WITHOUT, Rows, measured, severities
from tests.unit.support.stacks import load_stack

DEVICES: Rows = {
    **{(name, CPU): "0.12.0.1" for name in ("jax", "jaxlib", "jax-cuda13-plugin")},
    ("product", CPU): 0.0,
    ("convolution", CPU): 3e-7,
}


def of() -> dict[str, Proof]:
    part = jax.part("proofs")
    assert part is not None
    ctx = RoleContext(load_stack("jax-0.12"), roles=((jax, EnvironmentVariables()),))
    return {proof.name: proof for proof in part.proofs(EnvironmentVariables(), ctx)}


def test_each_runs_with_the_environments_python_and_also_without_a_gpu() -> None:
    proofs = of()
    assert [(proof.key, proof.level, proof.hosts) for proof in proofs.values()] == [
        ("jax.devices", "quick", 1),
        ("jax.workers", "full", 2),
    ]
    assert {proof.program.interpreter for proof in proofs.values()} == {("/opt/jax-0.12/bin/python",)}
    assert not any(proof.needs_gpu for proof in proofs.values())


def test_each_package_of_jax_has_the_version_that_the_stack_pins() -> None:
    judge = of()["devices"].judge
    assert judge(measured(DEVICES), WITHOUT) == ()
    for name in of()["devices"].program.arguments["packages"]:
        (finding,) = judge(measured({**DEVICES, (name, CPU): "none"}), WITHOUT)
        assert finding.sentence == f"version of {name}: found none, expected 0.12.0.1"


def test_jax_on_the_processor_alone_is_no_pass_where_the_host_has_a_card() -> None:
    """Without its plugin, or with an unusable GPU, JAX computes on the CPU and warns."""
    (finding,) = of()["devices"].judge(measured({**DEVICES, ("gpu", ""): None}), ONE_GPU)
    assert finding.sentence == "JAX does not compute on the card at 0000:3b:00.0, which the driver has"
    assert finding.device == T4


def test_a_product_of_all_hosts_that_is_wrong_fails() -> None:
    judge = of()["workers"].judge
    assert judge(measured({("product", CPU): 0.0}), WITHOUT) == ()
    assert severities(judge(measured({("product", CPU): 1.0}), WITHOUT)) == [("failed", CPU)]
    assert severities(judge(measured({}), WITHOUT)) == [("failed", CPU)]
