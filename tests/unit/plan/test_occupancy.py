"""Tests that users of a host's accelerators are probed on every host, whatever its roles."""

from __future__ import annotations

from pathlib import Path

from hostwright.fleet import Fleet
from hostwright.plan.desired import Desired
from hostwright.plan.host.occupancy import Occupancies, Occupancy, standard_occupancies
from hostwright.plan.model import Answer, Facts, Probe
from hostwright.plan.planning import removal_of
from hostwright.standard.roles.driver.states.gpu_use import BUSY_PROBES
from tests.unit.support.stacks import load_stack

ONE, OTHER = Probe("cat one"), Probe("cat other")


def words(probe: Probe) -> Occupancy:
    return Occupancy((probe,), lambda facts: tuple(facts[probe].text.split()))


def test_unchanged_host_is_still_asked_for_its_users() -> None:
    desired = Desired("gpu01", load_stack("tensorflow-2.9"), ())
    assert set(desired.probes()) >= {*BUSY_PROBES}
    assert set(removal_of(desired).probes()) >= {*BUSY_PROBES}


def test_probing_one_layer_asks_other_roles_for_users(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu01: {ansible_host: 192.0.2.1}}}")
    (target,) = Fleet.load(tmp_path).targets("gpu01", roles=["base"])
    assert [role.name for role in target.desired.roles] == ["base"]
    assert target.desired.occupancy == standard_occupancies()


def test_users_of_several_kinds_are_named_each_once() -> None:
    both = Occupancies((words(ONE), words(OTHER), words(ONE)))
    assert both.probes == (ONE, OTHER)
    assert both.users(Facts({ONE: Answer(0, "a b"), OTHER: Answer(0, "b c")})) == ("a", "b", "c")
    assert Occupancies().users(Facts({})) == ()
