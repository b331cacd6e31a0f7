"""Failures of TensorRT are seen on a host that has them, and on no other."""

from __future__ import annotations

from datetime import UTC, datetime

from hostwright.audit.judging.context import AuditContext
from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.model import Facts
from hostwright.standard.roles.tensorrt import Tensorrt
from hostwright.standard.roles.tensorrt.failures import FAILURES, LOADED
from tests.unit.roles.test_role_tensorrt import CUDA, PREFIX, RESOURCES, STACK
from tests.unit.support import stacks
from tests.unit.support.facts import answer
from tests.unit.support.known import KNOWN
from tests.unit.support.shell import ask

SIGNS = {rule.name: rule.sign for rule in FAILURES if rule.sign}
TENSORRT = "".join(f"{name} {PREFIX}/lib/{name}\n" for name in ("libnvinfer.so.7", "libnvinfer_plugin.so.7"))
NVRTC = f"libnvrtc.so.11.1 {CUDA}/libnvrtc.so.11.1\n"
TOOLKIT = "libnvrtc.so.11.2 /usr/local/cuda-11.2/targets/x86_64-linux/lib/libnvrtc.so.11.2\n"


def fired(loaded: str) -> dict[str, list[str]]:
    """What each sign sees, of those that see something."""
    desired = Desired("gpu01", STACK, (DesiredRole("tensorrt", ("cuda", "cudnn"), RESOURCES),), rules=stacks.RULES)
    facts, now = Facts({LOADED: answer(loaded)}), datetime(2026, 11, 23, tzinfo=UTC)
    ctx = AuditContext(desired, {"tensorrt": Tensorrt()}, facts, {"tensorrt": ()}, now)
    return {name: lines for name, sign in SIGNS.items() if (lines := list(sign.seen(ctx)))}


def test_a_host_that_is_as_desired_shows_none() -> None:
    assert fired(TENSORRT + NVRTC + TOOLKIT) == {}


def test_a_host_that_has_none_yet_shows_none() -> None:
    assert fired(TOOLKIT) == {}


def test_the_toolkits_own_runtime_compiler_is_not_the_one() -> None:
    assert fired(TENSORRT + TOOLKIT) == {"tensorrt-nvrtc": ["libnvrtc.so.11.1 is not in the loader's cache"]}


def test_a_second_one_in_the_loaders_path_is_told() -> None:
    other = "libnvinfer.so.7 /opt/TensorRT-7.2.1.6/lib/libnvinfer.so.7\n"
    path = "/opt/TensorRT-7.2.1.6/lib/libnvinfer.so.7"
    assert fired(other + TENSORRT + NVRTC) == {"tensorrt-in-loader": [f"the loader's cache also has {path}"]}


def test_the_question_is_one_that_this_machines_shell_understands() -> None:
    status, text = ask(LOADED.script.replace("nvinfer|", "c|"))
    assert status == 0
    assert any(line.startswith("libc.so.6 /") for line in text.splitlines())


def test_that_tensorflow_finds_no_tensorrt_is_no_failure_unless_it_is_there() -> None:
    note = "W tensorflow/stream_executor/platform/dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'"
    missing = f"{note}; dlerror: libnvinfer.so.7: cannot open shared object file: No such file or directory"
    assert KNOWN.classify(missing) is None
    found = KNOWN.classify(missing.replace("dlerror: libnvinfer.so.7", "dlerror: libnvrtc.so.11.1"))
    assert found is not None and found.rule.name == "tensorrt-nvrtc"
