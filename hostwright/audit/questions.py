"""The values of a host that are compared: with the stack where it pins them, else with those of other hosts.

One program prints them all (``readings_program``), in an audit from here and in the timer with which a host audits
itself; a question says which of its lines is meant, and what the stack wants there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hostwright.audit.readings_program import FAMILIES, root_program, user_program
from hostwright.model import Probe
from hostwright.resources.packages import named_like
from hostwright.resources.python import Recipe
from hostwright.stack import Stack

RELEASE_LAYER = "release"  #: what the host's record says of it; no role has this name

VALUE_SIGNS = 200  #: of an answer that are kept; the program itself cuts there

#: the packages of TensorFlow's environment that are looked at: it, and those whose newer versions break its import
PACKAGES = ("tensorflow", "numpy", "protobuf", "keras", "tensorboard")

#: the libraries of cuDNN by its major version: seven of one version, or none of them works
CUDNN_LIBRARIES = {
    "8": (
        "libcudnn", "libcudnn_adv_infer", "libcudnn_adv_train", "libcudnn_cnn_infer", "libcudnn_cnn_train",
        "libcudnn_ops_infer", "libcudnn_ops_train",
    )
}  # fmt: skip

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9 ._+-]{0,99}")


@dataclass(frozen=True, slots=True)
class Question:
    """One value: ``answer`` names the line of the program that holds it.

    ``want`` is the stack's value, ``None`` where no stack pins it; then hosts with the same answer to ``among``, the
    name of another line, are compared. ``given`` is a line and the value that it must have for the question to be
    asked at all: which numpy is right depends on the environment's Python.
    """

    layer: str
    name: str
    answer: str
    want: str | None = None
    among: str = ""
    given: tuple[str, str] | None = None
    root: bool = False

    def asked(self, answers: Mapping[str, str]) -> bool:
        """Whether the question is meant for a host with these answers."""
        return self.given is None or answers.get(self.given[0], "") == self.given[1]


def questions(stack: Stack, venv: str) -> tuple[Question, ...]:
    """Every question about a host of this stack. ``venv`` is TensorFlow's environment; empty: it is not looked at."""
    return (
        *_base(),
        *_driver(stack),
        *_cuda(stack),
        *_cudnn(stack),
        *_environment(stack),
        *(_tensorflow(stack) if venv else ()),
        *_container(stack),
        Question(RELEASE_LAYER, "stack", "record stack", stack.name),
        Question(RELEASE_LAYER, "at", "record at"),
    )


def question_probes(stack: Stack, venv: str) -> tuple[Probe, ...]:
    """What is asked of a host: what needs no root, then what does. They are the same for nearly all stacks."""
    return (Probe(user_program(venv, package_patterns(stack))), Probe(root_program(), root=True))


def package_patterns(stack: Stack) -> tuple[str, ...]:
    """The families of packages, and those of the stack's that belong to none."""
    pinned = (stack.cuda.package, *stack.cuda.components, *stack.container.toolkit.packages)
    others = [name for name in pinned if not named_like(name, FAMILIES)]
    return (*FAMILIES, *dict.fromkeys(others))


def read_answers(text: str) -> dict[str, str]:
    """The answers in a program's output; what is no answer, and a last line that was cut, are passed over."""
    whole = text.rpartition("\n")[0]
    rows = (line.partition("=") for line in whole.split("\n"))
    return {name: value.strip()[:VALUE_SIGNS] for name, sign, value in rows if sign and _NAME.fullmatch(name)}


def _base() -> Iterator[Question]:
    for name, answer, among in (
        ("kernel", "kernel", "distribution"),
        ("distribution", "distribution", ""),
        ("secure boot", "secure boot", ""),
        ("product", "product_name", ""),
        ("board", "board_name", "product_name"),
        ("bios version", "bios_version", "product_name"),
        ("bios date", "bios_date", "product_name"),
        ("cpu", "cpu", "product_name"),
        ("microcode", "microcode", "cpu"),
        ("memory", "memory", "product_name"),
        ("dkms", "package dkms", "distribution"),
    ):
        yield Question("base", name, answer, among=among)
    yield Question("base", "nouveau", "nouveau", "gone")
    yield Question("base", "driver pins", "driver pins", "yes")
    yield Question("base", "upgrades blacklist", "upgrades blacklist", "yes")


def _driver(stack: Stack) -> Iterator[Question]:
    version = stack.driver.version
    yield Question("driver", "loaded", "loaded", version)
    yield Question("driver", "module", "module", version)
    yield Question("driver", "dkms", "dkms module", version)
    for library in ("libcuda.so.1", "libnvidia-ml.so.1"):
        yield Question("driver", library.partition(".")[0], f"library {library}", version)
    yield Question("driver", "nvidia-smi", "nvidia-smi", "yes")
    yield Question("driver", "persistence daemon", "persistence daemon", "active")
    # Only hosts with NVSwitches have it; its version is judged by the rules of known failures.
    yield Question("driver", "fabric manager", "fabric manager", among="product_name")


def _cuda(stack: Stack) -> Iterator[Question]:
    wanted = stack.cuda
    yield Question("cuda", "nvcc", f"nvcc {wanted.series}", wanted.nvcc)
    yield Question("cuda", "toolkit", f"package {wanted.package}", wanted.package_version)
    yield Question("cuda", "toolkit hold", f"mark {wanted.package}", "held")
    for name, version in wanted.components.items():
        yield Question("cuda", name, f"package {name}", version)
        yield Question("cuda", f"{name} hold", f"mark {name}", "held")
    yield Question("cuda", "link", "cuda link", wanted.prefix)
    # Toolkits live side by side and the role lets others be: another one is no deviation from the stack.
    yield Question("cuda", "toolkits", "toolkits", among="distribution")
    yield Question("cuda", "sources", "cuda sources", among="distribution")


def _cudnn(stack: Stack) -> Iterator[Question]:
    version = stack.cudnn.library_version
    major = version.partition(".")[0]
    for library in CUDNN_LIBRARIES.get(major, ("libcudnn",)):
        yield Question("cudnn", library, f"cudnn {stack.cuda.series} {library}.so.{major}", version)
    yield Question("cudnn", "header", f"cudnn header {stack.cuda.series}", version)
    yield Question("cudnn", "strays", f"cudnn strays {major}", "")


def _environment(stack: Stack) -> Iterator[Question]:
    for library in stack.tensorflow.libraries:
        if library.startswith(("libcudart.", "libcudnn.")):
            want = f"{stack.cuda.prefix}/targets/x86_64-linux/lib/{library}"
            yield Question("environment", library, f"loader {library}", want)
    yield Question("environment", "profile", "profile", "yes")
    yield Question("environment", "ptxas", "ptxas", among="distribution")


def _tensorflow(stack: Stack) -> Iterator[Question]:
    wanted = stack.tensorflow
    yield Question("tensorflow", "python", "python", among="distribution")
    yield Question("tensorflow", "tensorflow", "dist tensorflow", wanted.version)
    for python, constraints in wanted.constraints.items():
        pins = Recipe("", python, f"tensorflow=={wanted.version}", constraints).pins
        for name in PACKAGES[1:]:
            yield Question("tensorflow", name, f"dist {name}", pins.get(name), given=("python", python))
    for name in PACKAGES[1:]:  # of a Python that the stack does not know, or of none
        yield Question("tensorflow", name, f"dist {name}", among="python")


def _container(stack: Stack) -> Iterator[Question]:
    wanted = stack.container.toolkit
    yield Question("container", "docker", "docker", among="distribution")
    yield Question("container", "docker service", "docker service", "active")
    for name in wanted.packages:
        yield Question("container", name, f"package {name}", wanted.version)
        yield Question("container", f"{name} hold", f"mark {name}", "held")
    yield Question("container", "nvidia runtime", "nvidia runtime", "yes")
    yield Question("container", "default runtime", "default runtime", among="distribution", root=True)
    yield Question("container", "cgroup driver", "cgroup driver", among="distribution", root=True)


def meant(all_of: Iterable[Question], answers: Mapping[str, str]) -> tuple[Question, ...]:
    """Of the questions with one layer and name, the first that is meant for a host with these answers."""
    chosen: dict[tuple[str, str], Question] = {}
    for one in all_of:
        if one.asked(answers):
            chosen.setdefault((one.layer, one.name), one)
    return tuple(chosen.values())


def check_lines(stack: Stack, venv: str) -> tuple[str, ...]:
    r"""What a host compares by itself, one check a line: layer, name, answer, condition and its value, and the stack's
    value as JSON and Prometheus both write it between quotes. Tabs are between them and, like new lines, in none.

    The record is left out: a host is brought to a stack first, and then it is written down that it was.
    """
    asked = [one for one in questions(stack, venv) if one.layer != RELEASE_LAYER and not one.root]
    return tuple(_check_line(one) for one in asked if one.want is not None)


def _check_line(one: Question) -> str:
    return "\t".join((one.layer, one.name, one.answer, *(one.given or ("", "")), _escaped(one.want or "")))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
