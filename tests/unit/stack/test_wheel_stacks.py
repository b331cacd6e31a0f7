"""The stacks whose environments have CUDA as wheels: their consistency, and the hosts they fit."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hostwright.plan.roles.role import discover, rules_of
from hostwright.resources.python.environments import EnvironmentSection
from hostwright.resources.python.python import Venv
from hostwright.resources.python.recipe import Recipe
from hostwright.stack import rules
from hostwright.stack.fitting import Misfit, RoleRules
from hostwright.stack.rules import HostFacts
from hostwright.stack.stack import Stack
from hostwright.standard.roles.cuda.wheels import CUBIN_FLOORS, Codes, capabilities, cuda_of
from hostwright.standard.roles.driver.section import DriverSection
from tests.unit.support.planned import HOSTS
from tests.unit.support.stackfleet import stacks
from tests.unit.support.stacks import load_stack, with_values
from tests.unit.support.standard import targets

ROLES = {role.name: role for role in discover()}
#: PCI ids of cards
K80, P100, P40, V100, T4, A100, L4, H100, B200, RTX5090 = (
    (0x10DE, device) for device in (0x102D, 0x15F7, 0x1B38, 0x1DB4, 0x1EB8, 0x20B0, 0x27B8, 0x2330, 0x2901, 0x2B85)
)


def rules_for(stack: Stack) -> tuple[RoleRules, ...]:
    return rules_of(ROLES[name] for name in stack.roles)


def check(stack: Stack) -> list[Misfit]:
    return rules.check_stack(stack, rules_for(stack))


def host(stack: Stack, card: tuple[int, int], release: tuple[str, str] = ("", ""), **more: Any) -> list[Misfit]:
    """The misfits of a host with the stack's first release, or another release."""
    first = next((name, versions[0]) for name, versions in stack.distributions.items() if versions)
    distribution = release if release[0] else first
    kernel, pythons = HOSTS[distribution]
    facts = {"gpus": (card,), "avx": True, "pythons": pythons, "memory_bytes": 10**11, "free_bytes": 10**11, **more}
    return rules.check_host(stack, HostFacts(*distribution, kernel, "x86_64", **facts), rules_for(stack))


def environments(stack: Stack) -> list[EnvironmentSection]:
    return [section for section in stack.sections.values() if isinstance(section, EnvironmentSection)]


NAMES = tuple(stack.name for stack in stacks() if environments(stack) and "cuda" not in stack.sections)


# --- the stacks


@pytest.mark.parametrize("name", NAMES)
def test_it_fits_together_and_fits_each_of_its_releases(name: str) -> None:
    stack = load_stack(name)
    assert check(stack) == []
    for distribution, versions in stack.distributions.items():
        for version in versions:
            assert host(stack, T4, (distribution, version)) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_host_gives_the_driver_alone(name: str) -> None:
    stack = load_stack(name)
    assert {"cuda", "cudnn", "environment"}.isdisjoint(stack.roles)
    assert {"cuda", "cudnn"}.isdisjoint(stack.sections)
    assert not any(artifact.file.startswith(("cuda", "cudnn")) for artifact in stack.artifacts.values())


@pytest.mark.parametrize("name", NAMES)
def test_every_wheel_is_pinned_with_its_hash_and_its_name_and_pip_takes_no_other(name: str) -> None:
    for section in environments(load_stack(name)):
        assert set(section.constraints) == set(section.pythons)
        for python, text in section.constraints.items():
            recipe = Recipe("x", python, section.requirement, text, mirrored=True)
            assert recipe.hashed().count("--hash=sha256:") == len(recipe.pins) > 20
            assert recipe.unlisted == ()
            assert "://" not in text
            assert len(cuda_of(recipe.pins)) == 1


def test_the_mirror_takes_each_wheel_by_its_name() -> None:
    (target,) = (one for one in targets() if one.name == "pytorch-2.14")
    (venv,) = (state for role in target.desired.roles for state in role.resources if isinstance(state, Venv))
    assert venv.path == "/opt/pytorch-2.14"
    recipe = next(one for one in venv.recipes if one.python == "3.12")
    assert "--require-hashes" not in recipe.plain
    assert "--hash" not in recipe.plain
    assert re.search(r"^torch==2\.14\.1 --hash=sha256:[0-9a-f]{64}$", recipe.hashed(), re.MULTILINE)


# --- the hosts they fit


@pytest.mark.parametrize(
    ("name", "card", "refused"),
    [
        ("pytorch-2.14", T4, ""),
        ("pytorch-2.14", A100, ""),
        ("pytorch-2.14", L4, ""),
        ("pytorch-2.14", H100, ""),
        ("pytorch-2.14", B200, ""),
        ("pytorch-2.14", RTX5090, ""),
        (
            "pytorch-2.14",
            V100,
            "PyTorch 2.14.1 has code for compute capability 7.5 to 12.0, but GV100 has compute capability 7.0",
        ),
        (
            "pytorch-2.14",
            P100,
            "PyTorch 2.14.1 has code for compute capability 7.5 to 12.0, but GP100 has compute capability 6.0",
        ),
        ("pytorch-2.10", V100, ""),
        (
            "pytorch-2.10",
            P40,
            "PyTorch 2.10.0 has code for compute capability 7.0 to 12.0, but GP102 has compute capability 6.1",
        ),
        ("volta-pascal", P100, ""),
        ("volta-pascal", P40, ""),
        ("volta-pascal", V100, ""),
        (
            "volta-pascal",
            B200,
            "PyTorch 2.7.1 has code for compute capability 5.0 to 9.0, but GB100 has compute capability 10.0",
        ),
        ("tensorflow-2.21", P100, ""),
        ("tensorflow-2.21", L4, ""),
        ("tensorflow-2.21", H100, ""),
        (
            "tensorflow-2.21",
            B200,
            "TensorFlow 2.21.0 has code for compute capability 6.0 to 9.0, but GB100 has compute capability 10.0",
        ),
        ("tensorflow-2.21", RTX5090, "TensorFlow 2.21.0 has code for compute capability 6.0 to 9.0, but GB202 has"),
        ("tensorflow-2.15", A100, ""),
        ("jax-0.12", T4, ""),
        ("jax-0.12", RTX5090, ""),
        ("jax-0.12", V100, "JAX 0.12.0.1 with its plugin for CUDA 13 has code for compute capability 7.5 and up"),
    ],
)
def test_cards_for_which_the_wheels_have_code(name: str, card: tuple[int, int], refused: str) -> None:
    sentences = [misfit.sentence for misfit in host(load_stack(name), card)]
    assert bool(sentences) == bool(refused)
    assert any(sentence.startswith(refused) for sentence in sentences) or not refused


def test_a_refusal_names_the_nearest_release_that_fits_this_host() -> None:
    (volta,) = host(load_stack("pytorch-2.14"), V100)
    assert volta.nearest.startswith("PyTorch 2.10.0 instead of 2.14.1")
    (pascal,) = host(load_stack("pytorch-2.14"), P40)
    assert pascal.nearest.startswith("PyTorch 2.7.1 instead of 2.14.1")
    (jax,) = host(load_stack("jax-0.12"), V100)
    assert jax.nearest == "constraints of jax[cuda12]==0.12.0.1"


def test_a_version_that_two_frameworks_share_is_named_once() -> None:
    nearest = next(misfit.nearest for misfit in host(load_stack("volta-pascal"), B200) if misfit.rule == "gpu-pytorch")
    assert nearest.count("Python 3.") == 1


@pytest.mark.parametrize(
    ("name", "driver", "refused"),
    [
        ("pytorch-2.14", "570.211.01", "PyTorch 2.14.1 contains CUDA 13.0, which needs driver 580.65.06 or newer"),
        ("pytorch-2.15", "580.65.06", ""),
        ("pytorch-2.10", "570.211.01", ""),
        ("pytorch-2.10", "470.256.02", "PyTorch 2.10.0 contains CUDA 12.8, which needs driver 525.60.13 or newer"),
        ("tensorflow-2.21", "550.163.01", ""),
        (
            "tensorflow-2.21",
            "470.256.02",
            "TensorFlow 2.21.0 contains CUDA 12.5, which needs driver 525.60.13 or newer",
        ),
        ("jax-0.12", "570.211.01", "JAX 0.12.0.1 with its plugin for CUDA 13 contains CUDA 13, which needs driver 580"),
    ],
)
def test_drivers_that_run_the_cuda_of_the_wheels(name: str, driver: str, refused: str) -> None:
    stack = with_values(load_stack(name), driver={"version": driver, "fabric_manager": None})
    sentences = [misfit.sentence for misfit in check(stack) if misfit.rule == "wheels-driver"]
    assert bool(sentences) == bool(refused)
    assert all(sentence.startswith(refused) for sentence in sentences)


@pytest.mark.parametrize(("driver", "rules_broken"), [("550.163.01", ["cuda-driver"]), ("580.159.04", [])])
def test_hopper_compiles_tensorflows_ptx_only_with_a_driver_as_new_as_its_cuda(
    driver: str, rules_broken: list[str]
) -> None:
    stack = with_values(load_stack("tensorflow-2.21"), driver={"version": driver, "fabric_manager": None})
    assert [misfit.rule for misfit in host(stack, H100)] == rules_broken
    assert host(stack, A100) == []


@pytest.mark.parametrize(
    ("name", "span"), [("tensorflow-2.21", "6.0 to 9.0"), ("tensorflow-2.15", "5.0 to 9.0"), ("pytorch-2.14", "7.5 to")]
)
def test_where_no_release_fits_the_cards_that_would_do_are_named(name: str, span: str) -> None:
    """Except TensorFlow 2.12, which loads only the host's CUDA and needs a toolkit in the stack."""
    stack = load_stack(name)
    (misfit,) = host(stack, B200 if name.startswith("tensorflow") else K80)[-1:]
    assert f"with compute capability {span}" in misfit.nearest
    assert "instead of" not in misfit.nearest


def test_tensorflow_before_2_14_takes_no_cuda_as_wheels() -> None:
    older = with_values(load_stack("tensorflow-2.15"), tensorflow={"version": "2.13.1"})
    assert "tensorflow-wheels" in {one.rule for one in check(older)}
    assert check(load_stack("tensorflow-2.15")) == []


def test_jax_wants_python_3_12_and_tensorflow_has_no_wheel_for_3_14() -> None:
    jax = with_values(load_stack("jax-0.12"), jax={"pythons": ("3.11",)})
    assert {misfit.rule for misfit in check(jax)} == {"jax-python", "constraints"}
    (first,) = (misfit for misfit in check(jax) if misfit.rule == "jax-python")
    assert first.sentence == "JAX 0.12.0.1 does not support Python 3.11, only 3.12 to 3.14"
    (old,) = host(load_stack("jax-0.12"), T4, pythons=("3.11",))
    assert old.rule == "host-python"
    later = with_values(load_stack("tensorflow-2.21"), tensorflow={"pythons": ("3.14",)})
    assert "tensorflow-python" in {misfit.rule for misfit in check(later)}


def test_wheels_of_cuda_12_and_13_are_refused_before_anything_is_downloaded() -> None:
    stack = load_stack("pytorch-2.14")
    (section,) = environments(stack)
    both = section.constraints["3.12"] + "nvidia-cudnn-cu12==9.10.2.21\n"
    (mixed,) = check(with_values(stack, pytorch={"constraints": {**section.constraints, "3.12": both}}))
    assert mixed.rule == "cuda-wheels-mixed"
    assert "pytorch.constraints for Python 3.12" in mixed.sentence
    assert "nvidia-cudnn-cu12 9.10.2.21 (CUDA 12) and " in mixed.sentence


@pytest.mark.parametrize(
    ("roles", "refused"),
    [
        (("cuda", "cudnn", "environment", "pytorch"), "nvidia-cublas"),
        (("cuda", "pytorch"), ""),  # a toolkit for extensions, not on any path
        (("cuda", "cudnn", "environment", "tensorflow"), ""),  # TensorFlow 2.9 uses the toolkit
    ],
)
def test_no_loader_path_names_another_cuda_than_that_of_wheels(roles: tuple[str, ...], refused: str) -> None:
    nine, wheels = load_stack("tensorflow-2.9"), load_stack("pytorch-2.14")
    stack = nine.model_copy(update={"sections": {**nine.sections, "pytorch": wheels.sections["pytorch"]}})
    with_new_driver = with_values(stack, driver={"version": "580.159.04", "fabric_manager": None, "kernels": None})
    found = rules.check_stack(with_new_driver, rules_of(ROLES[name] for name in ("base", "driver", *roles)))
    assert [misfit.rule for misfit in found] == (["cuda-path"] if refused else [])
    assert all(refused in misfit.sentence and "PyTorch 2.14.1" in misfit.sentence for misfit in found)


def test_placeholders_of_the_index_are_not_cuda() -> None:
    assert cuda_of({"nvidia-cublas-cu13": "0.0.1", "nvidia-cublas": "13.1.1.3", "nvidia-cufft": "12.0.0.61"}) == {}
    assert dict(cuda_of({"jax-cuda12-plugin": "0.12.0.1"})) == {"12": "jax-cuda12-plugin 0.12.0.1"}


def test_the_host_needs_the_c_library_of_the_wheels() -> None:
    stack = load_stack("pytorch-2.14").model_copy(update={"distributions": {"ubuntu": ("18.04",)}})
    (old,) = (misfit for misfit in host(stack, T4, ("ubuntu", "18.04"), pythons=("3.10",)) if misfit.rule == "glibc")
    assert "needs glibc 2.28, but ubuntu 18.04 has glibc 2.27" in old.sentence


def test_constraints_that_do_not_pin_the_package_are_refused_with_the_verb_that_writes_them() -> None:
    stack = load_stack("pytorch-2.14")
    (misfit,) = check(with_values(stack, pytorch={"pythons": ("3.12",), "constraints": {"3.12": "numpy==2.4.1\n"}}))
    assert misfit.rule == "constraints"
    assert misfit.nearest == "the output of `hostwright pins --requirement torch==2.14.1 --python 3.12`"


def test_code_of_one_major_version_runs_from_its_minor_version_on() -> None:
    codes = Codes(capabilities("8.0 8.6"), ptx=(9, 0), newest=(9, 0))
    runs = {each: codes.runs_on(each) for each in capabilities("7.5 8.0 8.9 9.0 10.0")}
    assert runs == {(7, 5): False, (8, 0): True, (8, 9): True, (9, 0): True, (10, 0): False}
    assert not codes.compiled_for((9, 0))


def test_the_floors_are_those_of_minor_version_compatibility() -> None:
    assert CUBIN_FLOORS == {"11": "450.80.02", "12": "525.60.13", "13": "580.65.06"}


def test_constraints_of_other_tools_count_too() -> None:
    text = (
        "numpy==2.4.1 \\\n    --hash=sha256:" + "a" * 64 + " \\\n    --hash=sha256:" + "b" * 64 + "\n    # via torch\n"
    )
    recipe = Recipe("x", "3.12", "numpy==2.4.1", text)
    assert recipe.hashed() == f"numpy==2.4.1 --hash=sha256:{'a' * 64} --hash=sha256:{'b' * 64}\n"
    assert recipe.plain == "numpy==2.4.1\n    # via torch\n"


def test_pascal_and_volta_get_the_proprietary_module_that_alone_drives_them() -> None:
    section = load_stack("volta-pascal").sections["driver"]
    assert isinstance(section, DriverSection)
    assert section.module == "proprietary"
    (blackwell,) = (one for one in host(load_stack("volta-pascal"), B200) if one.rule == "gpu-module")
    assert "need the open kernel module, and the stack has the proprietary one" in blackwell.sentence
