"""The role cuda: what is due for each state of a host, and the traps of NVIDIA's packages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from pydantic import ValidationError
from testinfra.backend.base import CommandResult

from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.host.hostfacts import HOST_PROBES, read_host
from hostwright.plan.model import Answer, Change, Refusal, Resource
from hostwright.plan.planning import removal_of
from hostwright.plan.roles.role import RoleContext, discover, rules_of
from hostwright.plan.stacks.fits import fits
from hostwright.resources.conditions import When
from hostwright.resources.packages.repositories import AptSource
from hostwright.resources.system.loader import Alternative
from hostwright.stack.ages import NONE, aged, lifetimes
from hostwright.stack.rules import check_stack
from hostwright.stack.stack import AptRepository, Artifact, Section, Stack
from hostwright.standard.roles.cuda import DRIVER, Cuda, cuda
from hostwright.standard.roles.cuda.section import CudaRelease, CudaSection
from hostwright.standard.roles.driver import Driver, driver
from hostwright.standard.roles.driver.section import DriverSection
from tests.layers import test_cuda as layer
from tests.unit.roles.cuda.test_cuda_rules import H100, RTX5090, T4
from tests.unit.stack.test_rules import nvidia
from tests.unit.support import recorded
from tests.unit.support.facts import Replies, changes_of, only
from tests.unit.support.keys import RING, with_our_key
from tests.unit.support.stacks import RULES, STACKS, load_stack

STACK = with_our_key(load_stack("tensorflow-2.9"))
STACK = STACK.model_copy(  # as after `invoke mirror`: everything has its checksum
    update={"artifacts": {name: one.model_copy(update={"sha256": "a" * 64}) for name, one in STACK.artifacts.items()}}
)
RESOURCES = cuda.resources(Cuda(), RoleContext(STACK))
LIST = STACK.section(CudaSection).repository.list_file
SOURCE = (
    "deb [signed-by=/usr/share/keyrings/cuda-repo-ubuntu2004-11-2-local-keyring.gpg] "
    "file:///var/cuda-repo-ubuntu2004-11-2-local /\n"
)
TOOLKIT = "cuda-toolkit-11-2\t11.2.2-1\thi \n" + "".join(
    f"{name}\t{version}\thi \n" for name, version in STACK.section(CudaSection).components.items()
)
REPOSITORY = "cuda-repo-ubuntu2004-11-2-local\t11.2.2-460.32.03-1\tii \n"
BARE: Replies = {"dpkg-query -W": "bash\t5.1\tii \n", "os-release": "ID=debian\n", "timeout 10": Answer(127, "")}
GREEN = {
    "dpkg-query -W": TOOLKIT + REPOSITORY,
    "os-release": "ID=debian\n",
    "grep -HsF": "",
    "sha256sum": f"{'a' * 64}  -\n",
    "stat -c '%F": "regular file|644|root:root\n",
    "test -s /var/cuda-repo": "",
    "dearmor": RING,
    f"cat -- {LIST}": SOURCE,
    "/var/lib/dpkg/info": "",
    "timeout 10": "Cuda compilation tools, release 11.2, V11.2.152\n",
    "cuda-11.2/lib64": "targets/x86_64-linux/lib\n",
    "cuda-11.2/include": "targets/x86_64-linux/include\n",
    "readlink -m": "/usr/local/cuda-11.2\n",
}


def plan(variables: Cuda | None = None, **differs: str | Answer) -> tuple[Change, ...]:
    resources = RESOURCES if variables is None else cuda.resources(variables, RoleContext(STACK))
    return changes_of(resources, {**GREEN, **{key.replace("_", " "): value for key, value in differs.items()}})


def script(changes: Iterable[Change]) -> str:
    return "\n".join(step.script for change in changes for step in change.steps)


def changed(key: str, value: str | Answer) -> Change:
    return only(changes_of(RESOURCES, {**GREEN, key: value}))


def test_a_provisioned_host_plans_nothing() -> None:
    assert plan() == ()


def test_a_bare_host_gets_everything_in_one_plan_and_in_order() -> None:
    changes = changes_of(RESOURCES, BARE)
    assert [change.what.split()[0] for change in changes] == [
        "file", "repository", "key", "file", "packages", "link", "link", "alternative",
    ]  # fmt: skip
    assert {name for change in changes for name in change.artifacts} == {"cuda-pin", "cuda-repository"}
    assert not any(isinstance(change, Refusal) for change in changes)


def test_the_toolkit_is_named_and_never_the_package_that_brings_a_driver() -> None:
    commands = script(changes_of(RESOURCES, BARE))
    assert "cuda-toolkit-11-2=11.2.2-1" in commands
    installed = re.findall(r"^(?:prepare|bring) (.*)$", commands, re.MULTILINE)
    assert installed
    names = {word.partition("=")[0] for words in installed for word in words.split()}
    assert not names & {"cuda", "cuda-11-2", "cuda-runtime-11-2", "cuda-drivers"}


@pytest.mark.parametrize(
    "name",
    [
        "nvidia-driver-460", "nvidia-dkms-470", "nvidia-kernel-common-460", "libnvidia-compute-460",
        "libnvidia-cfg1-460", "libnvidia-common-460", "libnvidia-gl-470", "cuda-drivers", "cuda-drivers-460",
        "libcuda1", "xserver-xorg-video-nvidia-460",
    ],
)  # fmt: skip
def test_a_simulation_that_names_a_driver_is_refused(name: str) -> None:
    assert re.search(DRIVER, name)


@pytest.mark.parametrize(
    "name",
    [
        "libnvidia-container1",
        "libnvidia-container-tools",
        "cuda-driver-dev-11-2",
        "cuda-toolkit-11-2",
        "libcublas-11-2",
    ],
)
def test_what_is_no_driver_is_let_through(name: str) -> None:
    assert not re.search(DRIVER, name)


def test_the_check_for_unwanted_packages_runs_before_the_installation() -> None:
    commands = script(changes_of(RESOURCES, BARE))
    assert commands.index("apt would also install") < commands.index("\nbring cuda-toolkit-11-2")


@pytest.mark.parametrize("version", ["11.2.0-1", "11.2.1-1"])
def test_the_other_releases_of_11_2_are_told_apart_by_dpkg(version: str) -> None:
    table = GREEN["dpkg-query -W"].replace("cuda-toolkit-11-2\t11.2.2-1", f"cuda-toolkit-11-2\t{version}")
    change = changed("dpkg-query -W", table)
    assert change.have == f"cuda-toolkit-11-2 {version}"
    assert "--allow-downgrades" in script([change])


def test_a_component_of_another_release_is_told_apart_too() -> None:
    table = GREEN["dpkg-query -W"].replace("libcublas-11-2\t11.4.1.1043-1", "libcublas-11-2\t11.3.1.68-1")
    assert changed("dpkg-query -W", table).want == "libcublas-11-2=11.4.1.1043-1"


def test_foreign_nvcc_is_found_by_its_full_version() -> None:
    change = changed("timeout 10", "Cuda compilation tools, release 11.2, V11.2.67\n")
    assert change.want == "V11.2.152"
    assert "--reinstall" in script([change])


def test_packages_are_held() -> None:
    table = GREEN["dpkg-query -W"].replace("cuda-toolkit-11-2\t11.2.2-1\thi", "cuda-toolkit-11-2\t11.2.2-1\tii")
    change = changed("dpkg-query -W", table)
    assert change.want == "cuda-toolkit-11-2 held"
    assert "install" not in script([change])


def test_a_deleted_file_brings_its_package_again_and_nothing_else() -> None:
    gone = "gone\tcuda-nvcc-11-2\t/usr/local/cuda-11.2/bin/ptxas\n"
    change = changed("/var/lib/dpkg/info", gone)
    assert "--reinstall" in script([change])
    assert "cuda-nvcc-11-2=11.2.152-1" in script([change])
    assert "libcublas" not in script([change])


def test_apt_key_is_never_used_and_the_list_names_the_key() -> None:
    commands = script(changes_of(RESOURCES, BARE))
    assert "apt-key" not in commands
    assert "trusted.gpg" not in commands
    assert (
        f"deb [signed-by=/usr/share/keyrings/{STACK.section(CudaSection).repository.package}-keyring.gpg] file:///var/"
        in commands
    )
    assert STACK.section(CudaSection).repository.fingerprint in commands


def test_the_vendors_list_that_names_no_key_is_replaced() -> None:
    change = changed(f"cat -- {LIST}", "deb file:///var/cuda-repo-ubuntu2004-11-2-local /\n")
    assert "+deb [signed-by=" in change.diff


def test_the_repository_is_the_one_that_exists() -> None:
    repository = next(change for change in changes_of(RESOURCES, BARE) if change.what.startswith("repository"))
    assert repository.want == "11.2.2-460.32.03-1"  # articles name 11.2.2-460.27.04, which does not exist


def test_an_older_local_repository_is_replaced() -> None:
    table = GREEN["dpkg-query -W"].replace("11.2.2-460.32.03-1", "11.2.0-460.27.04-1")
    assert changed("dpkg-query -W", table).have == "11.2.0-460.27.04-1"


SOURCES = "grep -HsF -e developer.download.nvidia.com"
NETWORK = "deb https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2004/x86_64 /"


def test_network_repository_is_disabled_beside_the_local_one() -> None:
    change = changed(SOURCES, f"/etc/apt/sources.list.d/cuda.list:{NETWORK}\n")
    assert "not read" in change.want
    assert "sed -i" in script([change])


def test_second_list_of_the_local_repository_is_disabled() -> None:
    line = "deb file:///var/cuda-repo-ubuntu2004-11-2-local /"
    assert changed(SOURCES, f"/etc/apt/sources.list.d/b.list:{line}\n").have.startswith("/etc/apt/sources.list.d/b")


def test_the_network_repository_stays_where_it_is_wanted() -> None:
    resources = cuda.resources(Cuda(network_repository=True), RoleContext(STACK))
    found = {**GREEN, SOURCES: f"/etc/apt/sources.list.d/cuda.list:{NETWORK}\n"}
    assert changes_of(resources, found) == ()


FORMER = "grep -HsF -e /usr/share/keyrings/cuda-repo-"


def test_former_toolkits_list_is_disabled_and_its_packages_stay() -> None:
    line = SOURCE.replace("11-2", "11-8")
    change = changed(FORMER, f"/etc/apt/sources.list.d/cuda-ubuntu2004-11-8-local.list:{line}")
    assert change.have.startswith("/etc/apt/sources.list.d/cuda-ubuntu2004-11-8-local.list: deb [signed-by=")
    assert "apt-get" not in script([change])


def test_own_and_disabled_source_lists_are_not_former_ones() -> None:
    commented = f"/etc/apt/sources.list.d/x.list:# disabled by hostwright: {SOURCE}"
    assert plan(**{FORMER: f"{LIST}:{SOURCE}{commented}"}) == ()


@pytest.mark.parametrize("leads", ["/usr/local/cuda-11.4", "/usr/local/cuda-12.0"])
def test_usr_local_cuda_is_turned_and_the_other_toolkit_stays(leads: str) -> None:
    change = changed("readlink -m", f"{leads}\n")
    assert change.have == leads
    assert leads not in script([change])
    assert "update-alternatives --set cuda /usr/local/cuda-11.2" in script([change])


def test_the_libraries_directory_is_lib64() -> None:
    change = changed("cuda-11.2/lib64", "/opt\n")
    assert (change.what, change.want) == ("link /usr/local/cuda-11.2/lib64", "targets/x86_64-linux/lib")


DROPPING = Cuda(keep_repository=False)


def test_a_dropped_repository_is_not_missed_while_the_toolkit_is_in_order() -> None:
    gone = {
        "dpkg-query -W": TOOLKIT,
        "test -s /var": Answer(1, ""),
        "dearmor": Answer(3, RING),
        "cat --": Answer(1, ""),
    }
    resources = cuda.resources(DROPPING, RoleContext(STACK))
    assert changes_of(resources, {**GREEN, **gone, f"cat -- {LIST}": Answer(1, "")}) == ()


def test_a_repository_that_is_not_needed_is_dropped() -> None:
    change = only(changes_of(cuda.resources(DROPPING, RoleContext(STACK)), GREEN))
    assert change.want.startswith("absent")


def test_a_dropped_repository_comes_back_for_a_repair_and_goes_again() -> None:
    gone = "gone\tcuda-nvcc-11-2\t/usr/local/cuda-11.2/bin/ptxas\n"
    damaged = {**GREEN, "dpkg-query -W": TOOLKIT, "/var/lib/dpkg/info": gone, "test -s /var": Answer(1, "")}
    changes = changes_of(cuda.resources(DROPPING, RoleContext(STACK)), damaged)
    assert [change.what.split()[0] for change in changes] == ["repository", "packaged", "repository"]
    assert (changes[0].artifacts, changes[2].have) == (("cuda-repository",), "installed by this plan")


def test_keeping_and_dropping_differ_in_the_repository_alone() -> None:
    def plain(resources: Iterable[Resource]) -> set[str]:
        return {type(one.resource if isinstance(one, When) else one).__name__ for one in resources}

    assert plain(cuda.resources(DROPPING, RoleContext(STACK))) - plain(RESOURCES) == {"RepoDropped"}


# --- from the vendor's repository on the network, alone or beside a driver from there

REPOSITORIES = "developer.download.nvidia.com/compute/cuda/repos"
SHARED = AptRepository(name="nvidia", uri=f"https://{REPOSITORIES}/debian12/x86_64/", key="nvidia-key")
SHARED_LIST = "/etc/apt/sources.list.d/nvidia.list"
SHARED_LINE = f"deb [signed-by=/usr/share/keyrings/nvidia-keyring.gpg] {SHARED.uri} /\n"
HAND_MADE = "/etc/apt/sources.list.d/hand.list"


def with_sections(**sections: Section) -> Stack:
    key = Artifact(name="nvidia-key", file="nvidia.asc", urls=("https://example.org/nvidia.asc",), sha256="a" * 64)
    update = {"sections": {**STACK.sections, **sections}, "artifacts": {**STACK.artifacts, "nvidia-key": key}}
    return STACK.model_copy(update=update)


FROM_NETWORK = STACK.section(CudaSection).model_copy(update={"repository": None, "network": SHARED})
PACKAGED = DriverSection(
    version="580.159.04",
    packages=dict.fromkeys(("libcuda1", "nvidia-driver-cuda", "nvidia-kernel-open-dkms"), "580.159.04-1"),
    repository=SHARED,
)


def disabled(stack: Stack, *lists: str) -> str:
    """What the role says of these lists, each of which names the vendor's network repository."""
    rows = "".join(f"{path}:deb https://{REPOSITORIES}/debian12/x86_64/ /\n" for path in lists)
    changes = changes_of(cuda.resources(Cuda(), RoleContext(stack)), {**GREEN, "grep -HsF": rows})
    return "".join(change.have for change in changes if change.what.startswith(f"apt sources {REPOSITORIES}"))


def test_the_toolkit_comes_from_the_network_with_a_key_of_its_own() -> None:
    resources = cuda.resources(Cuda(), RoleContext(with_sections(cuda=FROM_NETWORK)))
    green = {key: value for key, value in GREEN.items() if key != f"cat -- {LIST}"}
    assert changes_of(resources, {**green, f"cat -- {SHARED_LIST}": SHARED_LINE}) == ()
    steps = script(changes_of(resources, {**BARE, "dearmor": RING}))
    assert SHARED_LIST in steps and SHARED_LINE.strip() in steps
    assert "/var/cuda-repo" not in steps and "cuda-toolkit-11-2=11.2.2-1" in steps


@pytest.mark.parametrize("wanted", [STACK.section(CudaSection), FROM_NETWORK], ids=["local", "network"])
def test_a_drivers_list_of_the_network_stays_and_others_are_disabled(wanted: CudaSection) -> None:
    stack = with_sections(cuda=wanted, driver=PACKAGED)
    assert disabled(stack, SHARED_LIST) == ""
    assert disabled(stack, SHARED_LIST, HAND_MADE).startswith(f"{HAND_MADE}: ")
    assert SHARED_LIST in disabled(STACK, SHARED_LIST)


def test_driver_and_toolkit_share_one_list_which_stays_until_the_last_of_them_is_removed() -> None:
    stack = with_sections(cuda=FROM_NETWORK, driver=PACKAGED)
    ctx = RoleContext(stack)
    of_cuda, of_driver = cuda.resources(Cuda(), ctx), driver.resources(Driver(), ctx)
    lists = {state.path for state in (*of_cuda, *of_driver) if isinstance(state, AptSource)}
    assert lists == {SHARED_LIST}
    of_host = [Desired("gpu01", stack, (DesiredRole(name, (), states),)) for name, states in
               (("cuda", of_cuda), ("driver", of_driver))]  # fmt: skip
    alone, last = removal_of(of_host[0], staying=of_host[1]), removal_of(of_host[0])
    taken = [
        {thing for role in one.roles for state in role.resources for thing in state.takes()} for one in (alone, last)
    ]
    shared = {f"file {SHARED_LIST}", f"file {SHARED.keyring}", f"lists {SHARED_LIST}"}
    assert not shared & taken[0] and shared <= taken[1]


def test_what_a_repository_on_the_network_takes_of_the_disk_is_aptcache_and_toolkit() -> None:
    stack = with_sections(cuda=FROM_NETWORK)
    places = {share.directory for share in stack.section(CudaSection).shares(stack)}
    assert places == {"/var/cache/apt", "/usr/local/cuda-11.2", "/usr/local"}


# --- several side by side

NEWER = CudaRelease(
    version="13.0.2", package="cuda-toolkit-13-0", package_version="13.0.2-1", nvcc="V13.0.88", network=SHARED
)
SEVERAL = with_sections(cuda=STACK.section(CudaSection).model_copy(update={"beside": {"13.0": NEWER}}))


def test_toolkits_stand_side_by_side_each_held_and_from_its_own_source() -> None:
    resources = cuda.resources(Cuda(), RoleContext(SEVERAL))
    steps = script(changes_of(resources, {**BARE, "dearmor": RING}))
    for word in ("cuda-toolkit-11-2=11.2.2-1", "cuda-toolkit-13-0=13.0.2-1", LIST, SHARED_LIST, "cuda-13.0/lib64"):
        assert word in steps
    assert [one.target for one in resources if isinstance(one, Alternative)] == ["/usr/local/cuda-11.2"]
    assert disabled(SEVERAL, SHARED_LIST) == ""
    rows = f"{TOOLKIT}{REPOSITORY}cuda-toolkit-13-0\t13.0.2-1\thi \n"
    links = {"cuda-13.0/lib64": "targets/x86_64-linux/lib\n", "cuda-13.0/include": "targets/x86_64-linux/include\n"}
    green = {**links, f"cat -- {SHARED_LIST}": SHARED_LINE, "dpkg-query -W": rows, "cuda-13.0/bin/nvcc": "V13.0.88\n"}
    assert changes_of(resources, {**GREEN, **green}) == ()


#: Debian 12 as it was recorded, but for its cards; and the older toolkit beside 13.0 on today's driver
DEBIAN = recorded.facts_of("debian-12-bare", HOST_PROBES)
EXTENSIONS = """\
extends: pytorch-2.14
roles: [base, driver, cuda, pytorch]
cuda:
  version: 13.0.2
  package: cuda-toolkit-13-0
  package_version: 13.0.2-1
  nvcc: V13.0.88
  network: &vendors {name: nvidia, uri: https://example.org/debian12, key: nvidia-key}
  beside:
    older: {version: %s, package: cuda-toolkit-12-9, package_version: 1-1, nvcc: V1.0, network: *vendors}
artifacts:
  nvidia-key: {file: nvidia.asc, urls: ["https://example.org/nvidia.asc"]}
"""


def extensions(folder: Path, older: str) -> Stack:
    (folder / "ours.yml").write_text(EXTENSIONS % older)
    return load_stack("ours", (folder, STACKS))


def refused(stack: Stack, card: int) -> list[str]:
    """What refuses the recorded host with this card, as plans and ``stacks --hosts`` find it."""
    facts = replace(read_host(DEBIAN), gpus=nvidia(card))
    (fit,) = fits(facts, [stack], discover(), NONE, date(2026, 11, 29))
    return [str(one) for one in fit.misfits if one.rule != "distribution"]


def test_each_toolkit_of_a_host_has_code_for_its_cards(tmp_path: Path) -> None:
    stack = extensions(tmp_path, "12.6.3")
    assert refused(stack, T4) == []
    (sentence,) = refused(stack, RTX5090)
    assert "Blackwell GPUs (GB202) need CUDA 12.8 or newer, but the stack has 12.6.3" in sentence
    assert sentence.endswith("what works: CUDA 12.8.1 as cuda.beside.older, or null")
    assert refused(extensions(tmp_path, "12.9.1"), RTX5090) == []
    (sentence,) = refused(extensions(tmp_path, "11.2.2"), H100)
    assert sentence.endswith("what works: CUDA 11.8.0 as cuda.beside.older, or null")


def test_a_toolkit_beside_another_is_known_and_runs_on_the_driver(tmp_path: Path) -> None:
    stack = extensions(tmp_path, "12.9.9")
    (unknown,) = check_stack(stack, rules_of(role for role in discover() if role.name in stack.roles))
    assert (unknown.rule, unknown.nearest) == ("cuda", "one of these as cuda.beside.older")
    (old_driver,) = check_stack(SEVERAL, RULES)
    assert old_driver.sentence == "CUDA 13.0.2 needs driver 580.65.06 or newer, but the stack has 470.182.03"
    assert old_driver.nearest.startswith("driver 580.178.04 instead of 470.182.03 (with ")


def test_each_toolkits_nvcc_is_tried() -> None:
    def compiled(failing: str) -> Callable[..., CommandResult]:
        def run(script: str) -> CommandResult:
            one = next(one for one in SEVERAL.section(CudaSection).toolkits if f"{one.prefix}\n" in script)
            number = "11020" if one.series == "11.2" else "13000"
            return CommandResult(None, int(one.series == failing), script, number, "nvcc fatal")

        return run

    layer.test_nvcc_compiles_and_the_program_runs(compiled(""), SEVERAL)
    for series in ("11.2", "13.0"):
        with pytest.raises(AssertionError, match=rf"CUDA {series}\.\d: it does not: nvcc fatal"):
            layer.test_nvcc_compiles_and_the_program_runs(compiled(series), SEVERAL)


def test_the_ages_of_toolkits_beside_are_known(tmp_path: Path) -> None:
    versions = extensions(tmp_path, "12.8.1").versions()
    (role,) = (role for role in discover() if role.name == "cuda")
    found = aged(role.advisories, versions, date(2026, 11, 29))
    assert [one.sentence.partition(":")[0] for one in found] == ["cuda 12.8.1"]
    assert any(line.startswith("cuda 13.0 ") for line in lifetimes(role.advisories, versions, date(2026, 11, 29)))


def test_two_toolkits_of_one_series_are_refused() -> None:
    section = STACK.section(CudaSection)
    with pytest.raises(ValidationError, match=r"two toolkits of CUDA 11.2 would share one directory; keep one toolkit"):
        CudaSection.model_validate({**dict(section), "beside": {"again": section}})
