"""TensorFlow as a user runs it: imported, trained, and asked for GPUs by the venv's own Python."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hostwright.resources.python.python import Recipe
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.cuda.wheels import libraries_in, opened_elsewhere
from hostwright.standard.roles.cudnn.section import CudnnSection
from hostwright.standard.roles.driver.states.gpu_use import has_cards
from hostwright.standard.roles.tensorflow.look import look_command
from hostwright.standard.roles.tensorflow.section import TensorflowSection
from hostwright.verify.pip_check import PIP_CHECK


@pytest.fixture(scope="module")
def python(stack, variables) -> str:
    """The environment's own Python."""
    return f"{stack.section(TensorflowSection).home(variables.path)}/bin/python"


@pytest.fixture(scope="module")
def look(once, target) -> dict[str, Any]:
    done = once(*look_command(target.context))
    reports = [line for line in done.stdout.splitlines() if line.startswith("{")]
    ran = reports and (done.rc == 0 or "tensorrt" in target.variables)  # whose check tells whether that opens
    assert ran, f"TensorFlow does not run: {' '.join(done.stderr.split(chr(10))[-3:]).strip()}"
    report: dict[str, Any] = json.loads(reports[-1])
    return report


@pytest.fixture(scope="module")
def pins(look, stack) -> dict[str, str]:
    constraints = stack.section(TensorflowSection).constraints.get(look["python"], "")
    return Recipe("", look["python"], f"tensorflow=={stack.section(TensorflowSection).version}", constraints).pins


def test_the_processor_has_avx(host):
    """The processor has AVX, without which TensorFlow ends with 'Illegal instruction'."""
    assert host.run("grep -qw avx /proc/cpuinfo").rc == 0, "no avx among the flags in /proc/cpuinfo"


def test_it_runs_on_a_python_that_it_has_wheels_for(look, stack):
    """TensorFlow runs on one of the stack's Pythons."""
    assert look["python"] in stack.section(TensorflowSection).pythons, f"it runs on Python {look['python']}"


def test_it_imports_at_the_pinned_versions(look, pins):
    """TensorFlow, Keras, NumPy and protobuf import, each at the version that the stack pins."""
    wanted = {name: pins[name] for name in look["versions"]}
    assert look["versions"] == wanted, f"{look['versions']} instead of {wanted}"


@pytest.mark.beside
def test_its_packages_agree(host, python):
    """Every installed package finds those that it needs (pip check)."""
    done = host.run("%s -c %s", python, PIP_CHECK)
    assert done.rc == 0, done.stdout.strip() or done.stderr.strip()


def test_it_is_built_for_this_cuda_and_cudnn(look, target):
    """It is built with CUDA, for the series of the host's toolkit and the major version of its cuDNN."""
    assert look["cuda"], "tf.test.is_built_with_cuda() is False: this is a CPU build"
    cuda, cudnn = target.context.find(CudaSection), target.context.find(CudnnSection)
    wanted = {"cuda_version": cuda.series} if cuda else {}
    wanted |= {"cudnn_version": cudnn.version.partition(".")[0]} if cudnn else {}
    built = {name: look["build"][name] for name in wanted}
    assert built == wanted, f"built for {built}, and the stack has {wanted}"


def test_the_libraries_that_it_opens_are_the_stacks(look, stack, target):
    """Each library that it opens is found: those of CUDA and cuDNN in the stack's toolkit, the driver's elsewhere."""
    cuda, layers = target.context.find(CudaSection), target.context.sections
    toolkit = f"{cuda.prefix}/" if cuda else "no toolkit"
    wrong = {
        soname: look["libraries"][soname]
        for soname, layer in stack.section(TensorflowSection).libraries.items()
        if layer in layers
        and (
            not look["libraries"][soname].startswith("/")
            or look["libraries"][soname].startswith(toolkit) != (layer != "driver")
        )
    }
    assert not wrong, "; ".join(f"{soname}: {path}" for soname, path in wrong.items())


def test_its_cuda_libraries_are_its_own(look, stack):
    """Where its wheels bring CUDA, it opens those libraries in a login shell, and no copy of another place."""
    wrong = opened_elsewhere(look) if libraries_in(stack.section(TensorflowSection)) else []
    assert not wrong, f"opened instead of the wheels' own: {', '.join(wrong)}"


def test_it_trains_a_small_model(look):
    """A small Keras model learns on the CPU."""
    losses = look["losses"]
    assert losses[-1] < losses[0] / 2, f"the loss went from {losses[0]:.3f} to {losses[-1]:.3f}"


def test_it_lists_every_card(look, bounded_run, root_once, no_gpu):
    """TensorFlow lists as many GPUs as the driver has cards."""
    if not has_cards(root_once):
        no_gpu()
    listed = bounded_run("nvidia-smi -L")
    cards = sum(line.startswith("GPU ") for line in listed.stdout.splitlines())
    assert listed.rc == 0, f"nvidia-smi fails, so this cannot hold: {listed.stdout.strip() or listed.stderr.strip()}"
    assert look["cards"] == cards > 0, f"TensorFlow lists {look['cards']} of {cards} cards"
