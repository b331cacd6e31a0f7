"""The stacks besides tensorflow-2.9: each is consistent and fits its hosts; a change of stack is an ordinary plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from hostwright.common.templates import render
from hostwright.plan.model import Answer, Change, Resource
from hostwright.plan.roles.role import RoleContext, discover
from hostwright.resources.files.archives import ArchiveUnpacked, NoStrayFiles
from hostwright.resources.python.environments import EnvironmentVariables
from hostwright.resources.python.python import Venv
from hostwright.resources.system.loader import Alternative, LoaderCache
from hostwright.stack.rules import HostFacts
from hostwright.stack.stack import Stack
from hostwright.stack.stackfile import stack_names
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.cudnn import Cudnn, cudnn
from hostwright.standard.roles.cudnn.section import CudnnSection
from hostwright.standard.roles.driver import Driver, driver
from hostwright.standard.roles.environment import Environment, environment
from hostwright.standard.roles.environment.loaderconf import OneToolkitLoaded
from hostwright.standard.roles.selfaudit import Selfaudit, selfaudit
from hostwright.standard.roles.tensorflow import tensorflow
from hostwright.standard.roles.tensorflow.section import TensorflowSection
from tests.unit.support.auditvalues import role_context
from tests.unit.support.facts import changes_of
from tests.unit.support.shell import ask, run
from tests.unit.support.stacks import check_host, check_stack, load_stack, with_values

STACKS = Path(__file__).parents[3] / "inventory" / "stacks"
NAMES = [
    name
    for name in stack_names([STACKS])
    if name.startswith(("tensorflow-2.9", "tensorflow-2.1")) and name != "tensorflow-2.15"
]
HOUSE = load_stack("tensorflow-2.9", [STACKS])
T4, A100 = (0x10DE, 0x1EB8), (0x10DE, 0x20B0)
ROLES = [role for role in discover() if role.name in HOUSE.roles]


def stack(name: str) -> Stack:
    return load_stack(name, [STACKS])


def states(one: Stack) -> dict[str, tuple[Resource, ...]]:
    """The states of every role with default variables."""
    return {role.name: role.resources(role.variables(), RoleContext(one)) for role in ROLES}


def scripts(changes: Iterable[Change]) -> str:
    return "\n".join(step.script for change in changes for step in change.steps)


def good(one: Stack, python: str) -> HostFacts:
    distribution, versions = next((name, all_of) for name, all_of in one.distributions.items() if all_of)
    return HostFacts(
        distribution, versions[0], "5.4.0-150-generic", "x86_64", (T4,), True, (python,), 10**11, 10**11
    )  # fmt: skip


# --- consistency


def test_these_are_the_stacks() -> None:
    series = {"tensorflow-2.9", "tensorflow-2.10", "tensorflow-2.11", "tensorflow-2.12"}
    others = {"tensorflow-2.9-debian12", "tensorflow-2.9-r470.256", "tensorflow-2.9-ubuntu18.04", "tensorflow-2.9.3"}
    assert series | others | {"tensorflow-2.9-nccl-tensorrt"} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_fits_together_and_fits_a_host_with_any_of_its_pythons(name: str) -> None:
    one = stack(name)
    assert check_stack(one) == []
    for python in one.section(TensorflowSection).pythons:
        assert check_host(one, good(one, python)) == []


@pytest.mark.parametrize("name", NAMES)
def test_each_python_has_pins_of_its_own_that_name_this_tensorflow(name: str) -> None:
    wanted = stack(name).section(TensorflowSection)
    assert set(wanted.constraints) == set(wanted.pythons)
    for text in wanted.constraints.values():
        pins = {
            canonicalize_name(row.name): str(row.specifier)
            for row in (Requirement(line) for line in text.splitlines() if not line.startswith("#"))
        }
        assert pins["tensorflow"] == f"=={wanted.version}"
        assert pins["tensorboard"].startswith(f"=={wanted.series}.")
        assert all(pin.startswith("==") for pin in pins.values())


def test_2_12_has_the_numpy_that_its_wheel_asks_for() -> None:
    """Its metadata requires numpy<=1.24.3,>=1.22; a current resolver would select 1.26."""
    for text in stack("tensorflow-2.12").section(TensorflowSection).constraints.values():
        pin = next(line.partition("==")[2] for line in text.splitlines() if line.startswith("numpy=="))
        assert SpecifierSet(">=1.22,<=1.24.3").contains(pin)


@pytest.mark.parametrize("name", NAMES)
def test_the_metapackage_that_brings_another_driver_is_named_nowhere(name: str) -> None:
    one = stack(name)
    dashed = one.section(CudaSection).series.replace(".", "-")
    assert one.section(CudaSection).package == f"cuda-toolkit-{dashed}"
    assert f'"cuda-{dashed}"' not in one.model_dump_json()
    assert all(component.endswith(f"-{dashed}") for component in one.section(CudaSection).components)


def test_cuda_11_8_on_r470_runs_binaries_and_refuses_ptx() -> None:
    one = stack("tensorflow-2.12")
    facts = good(one, "3.10")
    assert check_host(one, facts) == []
    (refusal,) = check_host(one, replace(facts, gpus=(T4, A100)))
    assert refusal.rule == "cuda-driver"
    assert "CUDA 11.8.0 needs driver 520.61.05 or newer, but the stack has 470.182.03" in refusal.sentence
    assert "driver 520.61.05 instead of 470.182.03" in refusal.nearest


@pytest.mark.parametrize(
    ("part", "values", "rule"),
    [
        ("driver", {"version": "450.51.06", "fabric_manager": None}, "cuda-driver"),
        ("cuda", {"version": "11.2.2"}, "tensorflow-cuda"),
        ("cudnn", {"version": "8.1.0.77"}, "tensorflow-cudnn"),
        ("tensorflow", {"version": "2.11.1"}, "tensorflow-cuda"),
        ("tensorflow", {"pythons": ("3.7",)}, "tensorflow-python"),
        ("tensorflow", {"constraints": {"3.9": "numpy==1.24.3\nprotobuf==5.26.1\n"}}, "tensorflow-constraints"),
    ],
)
def test_a_wrong_mix_with_2_12_is_refused(part: str, values: dict[str, object], rule: str) -> None:
    one = stack("tensorflow-2.12")
    wrong = with_values(one, **{part: values})
    assert rule in {refusal.rule for refusal in check_stack(wrong)}


def test_protobuf_4_is_right_for_2_12_and_wrong_for_2_11() -> None:
    pins = dict.fromkeys(["3.9"], "numpy==1.24.3\nprotobuf==4.25.9\n")
    for name, refused in (("tensorflow-2.12", False), ("tensorflow-2.11", True)):
        one = stack(name)
        wanted = with_values(one, tensorflow={"pythons": ("3.9",), "constraints": pins})
        assert bool(check_stack(wanted)) is refused


# --- no dependence on 2.9 and 11.2


def test_for_the_present_stack_everything_lies_where_it_did() -> None:
    path = "/opt/tensorflow-2.9"
    assert tensorflow.resources(EnvironmentVariables(), RoleContext(HOUSE)) == tensorflow.resources(
        EnvironmentVariables(path=path), RoleContext(HOUSE)
    )
    on = Selfaudit()
    assert selfaudit.resources(on, role_context(HOUSE)) == selfaudit.resources(
        on, role_context(HOUSE, tensorflow=EnvironmentVariables(path=path))
    )
    assert [one.unless for one in RoleContext(HOUSE).shares() if one.part == "TensorFlow"] == [f"{path}/bin/python"] * 2
    spread = next(one for one in cudnn.resources(Cudnn(), RoleContext(HOUSE)) if isinstance(one, ArchiveUnpacked))
    assert (spread.name, [part.inside for part in spread.parts]) == ("cudnn", ["cuda/include", "cuda/lib64"])


@pytest.mark.parametrize("name", ["tensorflow-2.10", "tensorflow-2.11", "tensorflow-2.12"])
def test_another_series_names_nothing_of_2_9(name: str) -> None:
    text = repr(states(stack(name)))
    assert f"/opt/{name}" in text
    assert "tensorflow-2.9" not in text


def test_nothing_of_cuda_11_8_names_11_2() -> None:
    text = repr(states(stack("tensorflow-2.12")))
    assert "/usr/local/cuda-11.8" in text
    assert "11.2" not in text
    assert "11-2" not in text


# --- change of stack


def differing(other: Stack) -> set[str]:
    """The roles whose states differ from those of the present stack."""
    before, after = states(HOUSE), states(other)
    return {name for name in before if before[name] != after[name]}


def test_another_driver_changes_the_driver_alone() -> None:
    other = stack("tensorflow-2.9-r470.256")
    assert differing(other) == {"driver"}
    libraries = {
        f"{name}.so.1": f"/usr/lib/x86_64-linux-gnu/{name}.so.470.182.03" for name in ("libcuda", "libnvidia-ml")
    }
    lines = {"module": "470.182.03", "loaded": "470.182.03", "uvm": "yes", "record": "yes", **libraries}
    state = "".join(f"{key}={value}\n" for key, value in lines.items())
    resources = [one for one in driver.resources(Driver(), RoleContext(other)) if type(one).__name__ == "NvidiaRunfile"]
    (change,) = changes_of(resources, {"modinfo -k": state, "dpkg-query": "bash\t5.1\tii \n", "SecureBoot": "off\n"})
    assert (change.artifacts, change.disturbs) == (("driver",), "replaces the driver")
    assert "libcuda.so.470.182.03" in change.have
    assert change.want.startswith("470.256.02")


def test_tensorflow_patch_gets_a_second_venv() -> None:
    other = stack("tensorflow-2.9.3")
    assert differing(other) == {"tensorflow"}
    (before,) = (
        one for one in tensorflow.resources(EnvironmentVariables(), RoleContext(HOUSE)) if isinstance(one, Venv)
    )
    (after,) = (
        one for one in tensorflow.resources(EnvironmentVariables(), RoleContext(other)) if isinstance(one, Venv)
    )
    assert before.path == after.path == "/opt/tensorflow-2.9"
    homes = {recipe.python: recipe.home for recipe in before.recipes}
    (change,) = changes_of(after, {"python3.14": "/usr/bin/python3.9 3.9\n", "readlink -- ": f"link\t{homes['3.9']}\n"})
    assert change.have == homes["3.9"]
    assert change.want.startswith("tensorflow==2.9.3 and")
    assert homes["3.9"] not in scripts([change]), "the venv before is neither built nor removed"
    assert "path=/opt/tensorflow-2.9\n" in scripts([change])
    assert 'old=$(readlink -- "$path"' in scripts([change])


def test_another_toolkit_comes_beside_and_wins() -> None:
    other = stack("tensorflow-2.12")
    answers = {"readlink -m": "/usr/local/cuda-11.2\n", "folder=": "/etc/ld.so.conf.d/cuda-11-2.conf\n"}
    resources = [one for role in ("cuda", "cudnn", "environment") for one in states(other)[role]]
    found = changes_of([one for one in resources if isinstance(one, (Alternative, OneToolkitLoaded))], answers)
    assert [(change.have, change.want.partition(" (")[0]) for change in found] == [
        ("/usr/local/cuda-11.2", "/usr/local/cuda-11.8"),
        ("/etc/ld.so.conf.d/cuda-11-2.conf", "only /etc/ld.so.conf.d/cuda-11-8.conf"),
    ]
    bare = changes_of([one for one in resources if not isinstance(one, OneToolkitLoaded)])
    assert "/usr/local/cuda-11.2" not in scripts(bare), "the toolkit before is left alone"
    assert "cuda-toolkit-11-2" not in scripts(bare)


def test_the_cudnn_of_the_toolkit_before_stays_in_it() -> None:
    """A shared record would remove the files of the earlier one only."""
    spreads = [
        one for name in ("tensorflow-2.9", "tensorflow-2.12")
        for one in cudnn.resources(Cudnn(), RoleContext(stack(name))) if isinstance(one, ArchiveUnpacked)
    ]  # fmt: skip
    assert spreads[0].record != spreads[1].record
    assert {part.into for part in spreads[0].parts}.isdisjoint(part.into for part in spreads[1].parts)
    (strays,) = (
        one for one in cudnn.resources(Cudnn(), RoleContext(stack("tensorflow-2.12"))) if isinstance(one, NoStrayFiles)
    )
    assert not any("cuda-11.2" in place for place in (strays.home, *strays.directories))
    assert strays.right == ("*.so.8", "*.so.8.6.0")


def test_the_archive_of_8_6_has_its_own_layout() -> None:
    wanted = stack("tensorflow-2.12")
    (spread,) = (one for one in cudnn.resources(Cudnn(), RoleContext(wanted)) if isinstance(one, ArchiveUnpacked))
    top = "cudnn-linux-x86_64-8.6.0.163_cuda11-archive"
    assert [part.inside for part in spread.parts] == [f"{top}/include", f"{top}/lib"]
    assert wanted.artifact("cudnn").file == f"{top}.tar.xz"
    assert wanted.section(CudnnSection).number == 8600


# --- our files for the loader


def loader_file(folder: Path, series: str, text: str | None = None) -> Path:
    home = f"/usr/local/cuda-{series}"
    ours = render(
        "environment/ld.conf.j2", libraries=(f"{home}/targets/x86_64-linux/lib", f"{home}/extras/CUPTI/lib64")
    )
    path = folder / f"cuda-{series.replace('.', '-')}.conf"
    path.write_text(ours if text is None else text)
    return path


def one_loaded(folder: Path) -> OneToolkitLoaded:
    return OneToolkitLoaded(str(folder / "cuda-11-8.conf"), str(folder))


def test_the_role_asks_for_its_own_file_before_it_asks_the_loader() -> None:
    resources = environment.resources(Environment(), RoleContext(stack("tensorflow-2.12")))
    kinds = [type(one) for one in resources]
    assert kinds.index(OneToolkitLoaded) < kinds.index(LoaderCache)
    assert OneToolkitLoaded("/etc/ld.so.conf.d/cuda-11-8.conf") in resources


def test_only_files_that_the_role_wrote_for_other_toolkits_go(tmp_path: Path) -> None:
    loader_file(tmp_path, "11.8")
    former = loader_file(tmp_path, "11.2")
    loader_file(tmp_path, "11.4", "/usr/local/cuda-11.4/lib64\n")
    loader_file(tmp_path, "10.1", former.read_text())
    (tmp_path / "libc.conf").write_text("/usr/local/lib\n")
    status, said = ask(one_loaded(tmp_path).probes()[0].script)
    assert (status, said.splitlines()) == (0, [str(former)])
    (change,) = changes_of(one_loaded(tmp_path), {"folder=": said})
    assert run(scripts([change]).replace("/sbin/ldconfig", "true")).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "cuda-10-1.conf", "cuda-11-4.conf", "cuda-11-8.conf", "libc.conf",
    ]  # fmt: skip
    assert changes_of(one_loaded(tmp_path), {"folder=": ask(one_loaded(tmp_path).probes()[0].script)[1]}) == ()


def test_a_host_with_one_toolkit_plans_nothing(tmp_path: Path) -> None:
    loader_file(tmp_path, "11.8")
    assert ask(one_loaded(tmp_path).probes()[0].script) == (0, "")
    assert changes_of(OneToolkitLoaded("/etc/ld.so.conf.d/cuda-11-2.conf"), default=Answer(0, "")) == ()


@pytest.mark.parametrize(
    "lie",
    [
        "/etc/passwd",
        "/etc/ld.so.conf.d/../passwd",
        "/etc/ld.so.conf.d/cuda-11-2.conf",
        "/etc/ld.so.conf.d/x.conf",
        "/etc/ld.so.conf.d/cuda-1 1-8.conf",
        "/etc/ld.so.conf.d/cuda-$(id)-1.conf",
    ],
)
def test_what_a_host_says_takes_no_other_file_away(lie: str) -> None:
    assert changes_of(OneToolkitLoaded("/etc/ld.so.conf.d/cuda-11-2.conf"), {"folder=": f"{lie}\n"}) == ()
