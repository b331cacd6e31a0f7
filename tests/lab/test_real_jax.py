"""JAX 0.12 on Debian 13 without a card, from bare to removed, with JAX's own wheels from the package index.

jax, jaxlib and the plugin for CUDA 13 are the versions of the standard stack. NVIDIA's wheels are left out: the plugin
reports that it cannot load their libraries, and JAX computes on the CPU. Each test continues after the previous one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from lab import fleet
from lab.config import HostOptions, Machine
from lab.hardware import Hardware
from lab.records import find_machine
from tests.lab import recording
from tests.lab.conftest import FrontDoor, on
from tests.lab.distributions import LEAVES
from tests.lab.ownlab import own_lab
from tests.lab.trees import KERNEL_INDEX, KERNEL_PACKAGE, Tree
from tests.places import PROJECT

HOST, STACK = "jax01", "jax-0.12-processor"
CONSTRAINTS = PROJECT / "inventory/stacks/constraints/jax-0.12-py313.txt"
PINS = [pin for pin in CONSTRAINTS.read_text().splitlines(keepends=True) if not pin.startswith("nvidia-")]
VALUES = {
    "extends": "jax-0.12",
    "description": "jax-0.12 without NVIDIA's wheels",
    "jax": {"pythons": ["3.13"], "constraints": {"3.12": None, "3.13": "jax-0.12-processor.txt", "3.14": None}},
}
WANTED, OTHER = "0.12.0.1", "0.11.0"
EXTENSION = "jax_cuda13_plugin/cuda_plugin_extension.so"
#: Installs another jaxlib and truncates the plugin, as a full disk would.
DAMAGE = f"""
/opt/jax-0.12/bin/pip install --quiet --no-cache-dir jaxlib=={OTHER}
truncate --size 4096 /opt/jax-0.12/lib/python3.13/site-packages/{EXTENSION}
"""


@dataclass(frozen=True)
class Site:
    """The host, its tree when it was bare, and ``invoke``."""

    machine: Machine
    bare: Tree
    door: FrontDoor

    def host(self, verb: str, status: int) -> dict[str, Any]:
        """What a verb's document says of the host."""
        [found] = self.door.json(verb, "--hosts", HOST, status=status)["plans" if verb == "plan" else "hosts"]
        return dict(found)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A bare host with the roles of a host without a card."""
    options = HostOptions(profile="small", distro="trixie", hardware=Hardware(cards=()))
    with own_lab("realjax") as lab, pytest.MonkeyPatch.context() as patch:
        # without NVIDIA's wheels it does not count as the standard stack
        patch.delenv(recording.VARIABLE, raising=False)
        fleet.supply(lab, options)
        fleet.up(lab, [HOST], options=options)
        (lab.stack.parent / "jax-0.12-processor.txt").write_text("".join(PINS))
        (lab.stack.parent / f"{STACK}.yml").write_text(yaml.safe_dump(VALUES))
        (lab.inventory.parent / "host_vars").mkdir(exist_ok=True)
        variables = {"stack": STACK, "hostwright_roles": ["base", "jax"]}
        (lab.inventory.parent / f"host_vars/{HOST}.yml").write_text(yaml.safe_dump(variables))
        machine = find_machine(lab, HOST)
        on(machine, KERNEL_PACKAGE + KERNEL_INDEX)
        yield Site(machine, Tree.of(machine), FrontDoor(lab))


def versions(audit: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
    """Return the versions in the layer: name → (audit's reading, stack's pin)."""
    return {one["name"]: (one["have"], one["want"]) for one in audit["readings"] if one["layer"] == "jax"}


def test_a_bare_host_gets_jax_and_a_second_plan_is_empty(site: Site) -> None:
    site.host("provision", status=0)
    assert not site.host("plan", status=0)["roles"]


def test_what_needs_a_card_is_not_made_and_all_else_passes(site: Site) -> None:
    verified = site.host("verify", status=0)
    assert verified["passed"]
    layer = {check["check"]: check for check in verified["checks"] if check["role"] == "jax"}
    assert len(layer) == 5
    assert [name for name, check in layer.items() if check["no_gpu"]] == ["test_it_lists_every_card"]
    assert layer["test_it_lists_every_card"]["why"] == "no GPU in this host"
    printed = on(site.machine, "/opt/jax-0.12/bin/python -B -c 'import jax; print(jax.devices())' 2>&1")
    assert "Unable to load CUDA" in printed  # a message of the plugin
    assert "[CpuDevice(id=0)]" in printed


def test_an_audit_shows_jax_and_its_versions(site: Site) -> None:
    audit = site.host("audit", status=0)
    assert (audit["status"], audit["stand_ins"]) == ("desired", [])
    read = versions(audit)
    assert (read["jax"], read["jaxlib"]) == ((WANTED, WANTED), (WANTED, WANTED))
    assert read["python"][0].startswith("3.13")


def test_another_jaxlib_and_a_cut_plugin_are_named(site: Site) -> None:
    on(site.machine, DAMAGE)
    [planned] = site.host("plan", status=3)["roles"]
    [change] = planned["changes"]
    assert planned["role"] == "jax"
    assert change["have"] == f"jax-cuda13-plugin {WANTED} ({EXTENSION} missing or changed); jaxlib {OTHER}"
    assert change["want"] == f"jax-cuda13-plugin {WANTED}; jaxlib {WANTED}"

    verified = site.host("verify", status=1)
    assert verified["failed_roles"] == ["jax"]
    assert "jax-parts-apart" in {check["finding"]["rule"] for check in verified["checks"] if check["finding"]}
    assert verified["plan"]["roles"] == [planned]

    audit = site.host("audit", status=3)
    [deviation] = audit["deviations"]
    assert (audit["status"], deviation["layer"], deviation["have"]) == ("drift", "jax", change["have"])
    assert versions(audit)["jaxlib"] == (OTHER, WANTED)


def test_provision_repairs_both(site: Site) -> None:
    site.host("provision", status=0)
    assert not site.host("plan", status=0)["roles"]
    assert site.host("verify", status=0)["passed"]


def test_removed_nothing_of_it_is_left(site: Site) -> None:
    site.door.json("remove", "--hosts", HOST, status=0)
    assert site.bare.differences(Tree.of(site.machine), but=LEAVES) == []
