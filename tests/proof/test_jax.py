"""JAX's proofs by the verb, with real JAX on the hosts' processors: alone, three together, and another jaxlib."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import yaml

from tests.proof.bench import HOSTS, LEFT, Bench, failed, result, unexpected, values

TOGETHER = HOSTS[:3]
#: the last JAX for the hosts' Python; its plugins for CUDA are left out, since no host has a card
PINS = {
    **{"jax": "0.4.30", "jaxlib": "0.4.30", "ml-dtypes": "0.5.4", "numpy": "2.0.2", "opt-einsum": "3.4.0"},
    **{"scipy": "1.13.1", "importlib-metadata": "8.7.1", "zipp": "3.23.1"},
}
STACK = {
    "extends": "lab",
    "description": "the lab's stack with JAX",
    "jax": {"version": PINS["jax"], "pythons": ["3.9"], "constraints": {"3.9": "jax-0.4-py39.txt"}},
}
METADATA = "/opt/jax-0.4/lib/python3.9/site-packages/jaxlib-0.4.30.dist-info/METADATA"


@pytest.fixture(scope="module")
def with_jax(hosts: Bench) -> Iterator[Bench]:
    """Three hosts whose stack has JAX, provisioned."""
    stacks = hosts.lab.inventory.parent / "stacks"
    (stacks / "jax-0.4-py39.txt").write_text("".join(f"{name}=={version}\n" for name, version in PINS.items()))
    (stacks / "lab-jax.yml").write_text(yaml.safe_dump(STACK))
    with ExitStack() as variables:
        for host in TOGETHER:
            variables.enter_context(hosts.variables(host, stack="lab-jax", hostwright_roles=["base", "jax"]))
        done = hosts.invoke("provision", "--hosts", ",".join(TOGETHER))
        assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        yield hosts


def test_three_hosts_multiply_together_and_leave_nothing(with_jax: Bench) -> None:
    before = {host: with_jax.on(host, LEFT) for host in TOGETHER}
    told = with_jax.prove("jax", *TOGETHER, status=0)
    assert failed(told) == {host: set() for host in TOGETHER}, unexpected(told)
    for host in TOGETHER:
        figures = values(result(told, host, "jax.devices"))
        assert (figures["jax"], figures["jaxlib"], figures["gpu"]) == ("0.4.30", "0.4.30", None)
        figures = values(result(told, host, "jax.workers"))
        assert (figures["hosts"], figures["devices"], figures["product"]) == (3, 3, 0)
    assert {host: with_jax.on(host, LEFT) for host in TOGETHER} == before


def test_another_jaxlib_is_named(with_jax: Bench) -> None:
    """As long as the stack's: a file of another size is found by the plan, before any proof."""
    plant = f"cp -p {METADATA} /root/metadata; sed -i 's/^Version: 0.4.30/Version: 0.4.29/' {METADATA}"
    with with_jax.planted(TOGETHER[0], plant, f"cp -p /root/metadata {METADATA}"):
        told = with_jax.prove("jax.devices", *TOGETHER[:2], status=3)
    assert failed(told) == {TOGETHER[0]: {"jax.devices"}, TOGETHER[1]: set()}, unexpected(told)
    assert result(told, TOGETHER[0], "jax.devices")["sentence"] == "version of jaxlib: 0.4.29 instead of 0.4.30"


def test_cards_that_are_lost_are_missed(with_jax: Bench) -> None:
    with with_jax.variables(TOGETHER[0], hostwright_gpus=2):
        told = with_jax.prove("jax.devices", TOGETHER[0], status=3)
    assert result(told, TOGETHER[0], "jax.devices")["sentence"] == (
        "JAX computes on 0 of the 2 cards that the inventory has (hostwright_gpus)"
    )
