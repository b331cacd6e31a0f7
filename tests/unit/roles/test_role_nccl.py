"""The role nccl: NVIDIA's packages for the stack's CUDA, held, and no copy of NCCL before them."""

from __future__ import annotations

import pytest

from hostwright.common.errors import InputError
from hostwright.plan.model import Answer, Change
from hostwright.plan.roles.role import RoleContext
from hostwright.resources.packages.dpkg import HOLD
from hostwright.stack.stackdata import plain
from hostwright.standard.roles.nccl import Nccl, nccl
from hostwright.standard.roles.nccl.audit import audit_values
from hostwright.standard.roles.nccl.section import NcclSection
from tests.unit.support.facts import changes_of, only
from tests.unit.support.stacks import check_stack, load_stack, read_stack, with_values
from tests.unit.support.standard import targets

STACK = load_stack("tensorflow-2.9-nccl-tensorrt")
WANTED = RoleContext(STACK)
RESOURCES = nccl.resources(Nccl(), WANTED)
HOME = "/usr/lib/x86_64-linux-gnu"
TABLE = "libnccl2\t2.8.4-1+cuda11.2\thi \nlibnccl-dev\t2.8.4-1+cuda11.2\thi \n"
GREEN: dict[str, str | Answer] = {
    "names='libnccl.so*'": "",
    "dpkg-query -W": TABLE,
    "[ -s /usr": "",
    "ldconfig -p": f"libnccl.so.2 {HOME}/libnccl.so.2\n",
}


def changed(key: str, value: str | Answer) -> tuple[Change, ...]:
    return changes_of(RESOURCES, {**GREEN, key: value})


def test_a_provisioned_host_plans_nothing() -> None:
    assert changes_of(RESOURCES, GREEN) == ()


def test_a_bare_host_gets_both_packages_from_files_of_the_stack() -> None:
    changes = {change.what: change for change in changes_of(RESOURCES)}
    assert list(changes) == ["packages libnccl2 libnccl-dev", "loader cache"]
    packages = changes["packages libnccl2 libnccl-dev"]
    assert packages.artifacts == ("nccl", "nccl-dev")
    assert packages.want == "libnccl2 2.8.4-1+cuda11.2, libnccl-dev 2.8.4-1+cuda11.2, held"
    assert packages.steps[0].script.endswith(f"{HOLD}libnccl2 libnccl-dev")


def test_one_for_another_cuda_is_replaced() -> None:
    foreign = TABLE.replace("libnccl2\t2.8.4-1+cuda11.2", "libnccl2\t2.16.5-1+cuda11.8")
    change = only(changed("dpkg-query -W", foreign))
    assert change.have == "libnccl2 2.16.5-1+cuda11.8"
    both = [line for line in change.steps[0].script.splitlines() if " --install " in line]
    assert len(both) == 1 and "libnccl2_2.8.4-1" in both[0] and "libnccl-dev_2.8.4-1" in both[0]


def test_what_apt_would_upgrade_is_held_again() -> None:
    change = only(
        changed("dpkg-query -W", TABLE.replace("libnccl2\t2.8.4-1+cuda11.2\thi", "libnccl2\t2.8.4-1+cuda11.2\tii"))
    )
    assert (change.have, change.artifacts) == ("libnccl2 not held", ())


def test_a_library_that_is_gone_is_unpacked_again() -> None:
    change = only(changed("[ -s /usr/lib", Answer(1, "")))
    assert (change.have, change.artifacts) == (f"libnccl2 {HOME}/libnccl.so.2 gone", ("nccl", "nccl-dev"))


@pytest.mark.parametrize("directory", ["/usr/local/lib", "/usr/local/cuda-11.2/targets/x86_64-linux/lib"])
def test_a_copy_that_the_loader_finds_is_set_aside(directory: str) -> None:
    change = only(changed("names='libnccl.so*'", f"{directory}/libnccl.so.2\n"))
    assert change.have == f"{directory}/libnccl.so.2"
    assert "moved to /var/lib/hostwright/set-aside" in change.want
    asked = "\n".join(probe.script for one in RESOURCES for probe in one.probes())
    assert f" {directory} " in asked.replace("'", " ")


def test_plugins_for_the_network_are_no_copies() -> None:
    asked = "\n".join(probe.script for one in RESOURCES for probe in one.probes())
    assert "'libnccl.so*'" in asked and "libnccl*" not in asked


def test_the_number_is_what_the_library_says() -> None:
    section = STACK.section(NcclSection)
    assert section.number == 2804
    assert section.model_copy(update={"version": "2.15.5"}).number == 21505


def test_it_fits_its_cuda_alone() -> None:
    assert check_stack(STACK) == []
    (misfit,) = check_stack(with_values(STACK, nccl={"version": "2.15.5"}))
    assert misfit.sentence == "NCCL 2.15.5 is built for CUDA 11.0 and 11.8, not for 11.2.2"
    assert misfit.nearest.startswith("NCCL 2.8.4 instead of 2.15.5 (with ")
    (misfit,) = check_stack(with_values(STACK, nccl={"cuda": "11.8"}))
    assert "nccl.cuda is 11.8, but the stack's CUDA is 11.2.2" in misfit.sentence
    assert "nccl" in {misfit.rule for misfit in check_stack(with_values(STACK, nccl={"version": "2.30.1"}))}


def test_audits_compare_packages_holds_and_what_is_loaded() -> None:
    assert {one.name: one.want for one in audit_values(Nccl(), WANTED)} == {
        "libnccl2": "2.8.4-1+cuda11.2",
        "libnccl2 hold": "held",
        "libnccl-dev": "2.8.4-1+cuda11.2",
        "libnccl-dev hold": "held",
        "library": "2.8.4",
        "loaded from": f"{HOME}/libnccl.so.2",
    }


def test_stacks_without_it_work_and_no_host_fetches_it_unasked() -> None:
    plainly = load_stack("tensorflow-2.9")
    assert plainly.find(NcclSection) is None
    with pytest.raises(InputError, match=r"the stack tensorflow-2\.9 has no NcclSection"):
        plainly.section(NcclSection)
    assert {one.name for one in STACK.used_by(STACK.roles)} == {one.name for one in plainly.used_by(plainly.roles)}
    assert {one.name for one in STACK.used_by(["nccl"])} == {"nccl", "nccl-dev"}
    assert read_stack(plain(STACK)).digest() == STACK.digest()


def test_a_stack_that_the_host_had_before_is_looked_at_without_it() -> None:
    """Removing a role, and going back, look at former stacks: one that says nothing of the role did not bring it."""
    target = next(one for one in targets() if one.name == "optional")
    before = target.having(load_stack("tensorflow-2.9"))
    assert {role.name for role in target.of_host} - {role.name for role in before.of_host} == {"nccl", "tensorrt"}
    assert [role.name for role in before.desired.roles] == [role.name for role in before.roles]
    assert target.having(target.stack).roles == target.roles
