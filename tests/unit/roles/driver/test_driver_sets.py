"""Sets of packages from NVIDIA's repository and from Ubuntu: what a stack must name, and what a host gets.

Neither archive can be reached where these tests are written. Names are those of NVIDIA's guides, of public recipes and
of Ubuntu's archive; revisions of versions are made up.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hostwright.plan.model import Answer, Change, Planned, Refusal
from hostwright.plan.roles.role import RoleContext
from hostwright.resources.files.files import File
from hostwright.resources.packages.dpkg import HOLD
from hostwright.resources.packages.packages import DebsAbsent
from hostwright.resources.packages.repositories import AptSource, Keyring
from hostwright.resources.system.services import Disturbing
from hostwright.stack.stack import AptRepository, Artifact, Stack
from hostwright.standard.roles.driver import Driver, driver
from hostwright.standard.roles.driver.failures.kernel import Kernel, lacks_driver
from hostwright.standard.roles.driver.failures.state import read_tree
from hostwright.standard.roles.driver.rules import packages_are_pinned, packages_are_whole
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.driver.states.others import PREFERENCES
from hostwright.standard.roles.driver.states.packages import DriverPackagesGone, NvidiaPackages
from tests.unit.support.facts import changes_of, facts_for
from tests.unit.support.stacks import load_stack

V = "580.159.04"
PIN = f"nvidia-driver-pinning-{V}"
REPOSITORY = AptRepository(
    name="nvidia-driver",
    uri="https://developer.example.org/repos/{distribution}{release}/x86_64",
    key="nvidia-key",
    fingerprint="EB693B3035CD5710E231E123A4B469963BF863CC",
)
#: compute only, as NVIDIA's repository for Debian has it
NVIDIA = dict.fromkeys((PIN, "nvidia-driver-cuda", "libcuda1", "libnvidia-ml1", "libnvidia-cfg1", "libnvidia-gpucomp",
                        "libnvidia-ptxjitcompiler1", "nvidia-kernel-open-dkms", "nvidia-kernel-support",
                        "firmware-nvidia-gsp", "nvidia-modprobe", "nvidia-persistenced"), f"{V}-1")  # fmt: skip
#: headless, as Ubuntu has it; the module of each kernel comes compiled
STEM = "linux-modules-nvidia-580-server-open"
UBUNTU = dict.fromkeys(("libnvidia-compute-580-server", "nvidia-utils-580-server", "nvidia-compute-utils-580-server",
                        "nvidia-kernel-common-580-server", "nvidia-firmware-580-server-580.159.04",
                        "libnvidia-cfg1-580-server"), f"{V}-0ubuntu0.24.04.1")  # fmt: skip
KERNEL = "6.8.0-90-generic"
MODULES = tuple(f"{name}-{KERNEL}" for name in (STEM, STEM.replace("modules", "objects"), "linux-signatures-nvidia"))


def section(**values: object) -> DriverSection:
    return DriverSection.model_validate({"version": V, **values})


def nvidia(*without: str, **more: str) -> DriverSection:
    packages = {name: text for name, text in {**NVIDIA, **more}.items() if name not in without}
    return section(packages=packages, repository=REPOSITORY)


def ubuntu(**values: object) -> DriverSection:
    return section(**{"packages": UBUNTU, "precompiled": STEM, **values})


def stack_of(wanted: DriverSection) -> Stack:
    base = load_stack("debian-13-r550")
    key = Artifact(name="nvidia-key", file="nvidia.asc", urls=("https://developer.example.org/key",))
    return base.model_copy(update={"sections": {**base.sections, "driver": wanted}, "artifacts": {"nvidia-key": key}})


# --- what a stack must name


def test_whole_sets_are_taken() -> None:
    for wanted in (nvidia(), ubuntu()):
        assert [*packages_are_whole(wanted), *packages_are_pinned(wanted)] == []
        assert wanted.kind == "open"


@pytest.mark.parametrize(
    ("wanted", "sentence", "nearest"),
    [
        (nvidia(PIN), "nvidia-driver-cuda follows the newest branch of its repository, and driver.packages have no pin "
         f"for {V}", PIN),
        (nvidia(PIN, **{"nvidia-driver-pinning-595": f"{V}-1"}), f"nvidia-driver-pinning-595 pins another driver than "
         f"{V}", PIN),
        (section(version="570.211.01", packages={"libcuda1": "570.211.01-1", PIN: "1"}),
         f"{PIN} is for R580 and later; names of driver 570.211.01 carry the branch", "nvidia-open-570"),
    ],
)  # fmt: skip
def test_a_set_without_its_pin_is_refused(wanted: DriverSection, sentence: str, nearest: str) -> None:
    (misfit,) = packages_are_pinned(wanted)
    assert (misfit.sentence, misfit.nearest) == (sentence, nearest)


def test_a_pin_of_the_branch_alone_is_enough() -> None:
    assert list(packages_are_pinned(nvidia(PIN, **{"nvidia-driver-pinning-580": "580-1"}))) == []


def test_names_with_the_branch_need_no_pin() -> None:
    old = section(version="570.211.01", packages={"nvidia-open-570": "570.211.01-1"}, repository=REPOSITORY)
    assert list(packages_are_pinned(old)) == []
    assert list(packages_are_pinned(ubuntu())) == []


def test_a_set_that_lacks_a_part_is_refused_by_the_parts_name() -> None:
    (misfit,) = packages_are_whole(nvidia("libcuda1", "nvidia-kernel-open-dkms"))
    assert misfit.sentence.startswith("driver.packages have no kernel module and no libcuda.so.1, and apt may")
    (misfit,) = packages_are_whole(ubuntu(precompiled=None))
    assert "no kernel module" in misfit.sentence
    (misfit,) = packages_are_whole(ubuntu(packages={**UBUNTU, "nvidia-dkms-580-server-open": f"{V}-0ubuntu0.24.04.1"}))
    assert "precompiled kernel module, and driver.packages contain another" in misfit.sentence


# --- what hosts get


def test_the_repository_comes_first_by_distribution_and_with_its_key() -> None:
    states = driver.resources(Driver(), RoleContext(stack_of(nvidia())))
    kinds = [type(one.resource if isinstance(one, Disturbing) else one) for one in states]
    assert kinds.index(Keyring) < kinds.index(AptSource) < kinds.index(DebsAbsent) < kinds.index(NvidiaPackages)
    (source,) = (one for one in states if isinstance(one, AptSource))
    (change,) = changes_of(source, {"os-release": 'ID=ubuntu\nVERSION_ID="24.04"\n'})
    assert isinstance(change, Change)
    assert "/repos/ubuntu2404/x86_64 /" in change.diff


def planned(answers: dict[str, str | Answer], wanted: DriverSection | None = None) -> list[Planned]:
    states = driver.resources(Driver(), RoleContext(stack_of(wanted or ubuntu())))
    (installed,) = (one for one in states if isinstance(one, NvidiaPackages))
    told = {"drivers/nouveau": "", "/boot/vmlinuz": "", "display-manager": "", "extended_states": "",
            "SecureBoot": "on\n", "uname -rm": f"{KERNEL} x86_64\n", **answers}  # fmt: skip
    return list(changes_of(installed, told))


HELD = "".join(f"{name}\t{version}\thi \n" for name, version in UBUNTU.items())
MODULE_ROWS = "".join(f"{name}\t6.8.0-90.91+1\thi \n" for name in MODULES)
STATE = f"""module={V}
license=Dual MIT/GPL
loaded={V}
loaded kind=open
uvm=yes
libcuda.so.1=/usr/lib/x86_64-linux-gnu/libcuda.so.{V}
libnvidia-ml.so.1=/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{V}
"""


def test_a_signed_module_of_the_running_kernel_comes_under_secure_boot_and_is_held() -> None:
    (change,) = planned({"dpkg-query -W": "bash\t5.1\tii \n"})
    assert isinstance(change, Change)
    install = change.steps[0].script
    for name in MODULES:
        assert f" {name}" in install
    assert f"nvidia-utils-580-server={V}-0ubuntu0.24.04.1" in install
    assert HOLD in install
    assert not any("dkms" in step.script for step in change.steps[:1])


def test_a_host_that_has_it_plans_nothing_and_another_kernel_gets_its_own() -> None:
    whole = {"dpkg-query -W": HELD + MODULE_ROWS, "modinfo -k": STATE}
    assert planned(whole) == []
    (change,) = planned({**whole, "uname -rm": "6.8.0-95-generic x86_64\n"})
    assert f"{STEM}-6.8.0-95-generic absent" in change.have
    (unheld,) = planned({**whole, "dpkg-query -W": HELD + MODULE_ROWS.replace("\thi", "\tii")})
    assert isinstance(unheld, Change)
    assert not unheld.disturbs


def test_a_module_of_another_driver_in_the_kernels_package_is_refused() -> None:
    other = STATE.replace(f"module={V}", "module=580.126.09")
    (refusal,) = planned({"dpkg-query -W": HELD + MODULE_ROWS, "modinfo -k": other})
    assert isinstance(refusal, Refusal)
    assert refusal.sentence.startswith(
        f"{STEM}-{KERNEL} has the module of driver 580.126.09, but the stack has driver {V}"
    )


def test_pins_let_the_modules_of_every_kernel_come_and_unattended_upgrades_leave_them_alone() -> None:
    wanted = ubuntu()
    (text,) = (
        one.content for one in driver.resources(Driver(), RoleContext(stack_of(wanted)))
        if isinstance(one, File) and one.path == PREFERENCES
    )  # fmt: skip
    first = text.index(
        f"Package: {STEM}-* linux-objects-nvidia-580-server-open-* linux-signatures-nvidia-*\nPin: version *"
    )
    assert first < text.index("nvidia-driver*")
    assert f"{STEM}-[0-9]" in wanted.never_unattended()
    assert f"!{STEM}-[0-9]*" in wanted.leaving()


def test_removal_takes_the_modules_of_all_kernels() -> None:
    (installed,) = (one for one in driver.resources(Driver(), RoleContext(stack_of(ubuntu())))
                    if isinstance(one, NvidiaPackages))  # fmt: skip
    (gone,) = installed.removal()
    assert isinstance(gone, DriverPackagesGone)
    older = MODULE_ROWS + MODULE_ROWS.replace(KERNEL, "6.8.0-88-generic")
    facts = facts_for(gone, {"dpkg-query -W -f='${Package}:": HELD + older, "/sys/module/nvidia/version": ""})
    change = gone.plan(facts)
    assert isinstance(change, Change)
    assert f"{STEM}-6.8.0-88-generic" in change.steps[0].script


def test_a_kernel_without_its_package_boots_without_the_driver() -> None:
    newer = Kernel("6.8.0-95-generic", image=True)
    why = lacks_driver(newer, {V}, read_tree(""), ubuntu())
    assert why == f"no module; the package {STEM}-6.8.0-95-generic is not installed"
    assert lacks_driver(replace(newer, module=V), {V}, read_tree(""), ubuntu()) == ""
