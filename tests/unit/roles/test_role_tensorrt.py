"""The role tensorrt: the archive in a directory of its own, the NVRTC that it was linked with, and no second one."""

from __future__ import annotations

import pytest

from hostwright.plan.model import Answer, Change
from hostwright.plan.roles.role import RoleContext
from hostwright.stack.store.hostcache import host_path
from hostwright.standard.roles.tensorrt import CONF, Tensorrt, tensorrt
from hostwright.standard.roles.tensorrt.audit import audit_values
from hostwright.standard.roles.tensorrt.section import TensorrtSection
from tests.unit.support.facts import changes_of, only
from tests.unit.support.stacks import check_stack, load_stack, with_values

STACK = load_stack("tensorflow-2.9-nccl-tensorrt")
WANTED = RoleContext(STACK)
RESOURCES = tensorrt.resources(Tensorrt(), WANTED)
PREFIX, CUDA = "/usr/local/TensorRT-7.2.3.4", "/usr/local/cuda-11.1/targets/x86_64-linux/lib"
SEAL = f"7.2.3.4 {host_path(STACK.artifact('tensorrt'))}\n"
GREEN: dict[str, str | Answer] = {
    "names='libnvinfer*.so.7*'": "",
    "dpkg-query -W": "cuda-nvrtc-11-1\t11.1.105-1\thi \n",
    "maxdepth 0": SEAL,  # in the probe that answers with the record's first line and the files that differ from it
    "[ -s /usr": "",
    f"cat -- {CONF}": f"{PREFIX}/lib\n{CUDA}\n",
    f"stat -c '%F|%a|%U:%G' -- {CONF}": "regular file|644|root:root\n",
    "found 'libnvinfer": f"libnvinfer.so.7 {PREFIX}/lib/libnvinfer.so.7\n"
    f"libnvinfer_plugin.so.7 {PREFIX}/lib/libnvinfer_plugin.so.7\n",
    "found libnvrtc": f"libnvrtc.so.11.1 {CUDA}/libnvrtc.so.11.1\n",
}


def changed(key: str, value: str | Answer) -> tuple[Change, ...]:
    return changes_of(RESOURCES, {**GREEN, key: value})


def test_a_provisioned_host_plans_nothing() -> None:
    assert changes_of(RESOURCES, GREEN) == ()


def test_a_bare_host_gets_the_archive_the_runtime_compiler_and_the_loaders_path() -> None:
    changes = changes_of(RESOURCES)
    assert [change.what for change in changes] == [
        "files of tensorrt 7.2.3.4", "package cuda-nvrtc-11-1", f"file {CONF}", "loader cache", "loader cache",
    ]  # fmt: skip
    assert [change.artifacts for change in changes[:2]] == [("tensorrt",), ("nvrtc-11.1",)]


def test_apts_tensorrt_of_the_same_major_version_goes_and_others_stay() -> None:
    table = "libnvinfer7\t7.2.1-1+cuda11.1\tii \nlibnvinfer8\t8.6.1\tii \n" + str(GREEN["dpkg-query -W"])
    change = only(changed("dpkg-query -W", table))
    assert change.have == "libnvinfer7 7.2.1-1+cuda11.1"
    assert "two TensorRTs of one major version" in change.want


def test_a_copy_in_the_loaders_directories_is_set_aside() -> None:
    change = only(changed("names='libnvinfer*.so.7*'", "/usr/lib/x86_64-linux-gnu/libnvinfer.so.7\n"))
    assert "moved to /var/lib/hostwright/set-aside" in change.want


def test_a_runtime_compiler_that_is_gone_comes_back() -> None:
    change = only(changed("[ -s /usr", Answer(1, "")))
    assert (change.have, change.artifacts) == (f"{CUDA}/libnvrtc.so.11.1 gone", ("nvrtc-11.1",))


def test_the_archive_has_no_address_for_nvidia_wants_a_login() -> None:
    assert STACK.artifact("tensorrt").urls == ()
    assert STACK.artifact("tensorrt").sha256 is not None
    assert {one.name for one in STACK.used_by(["tensorrt"])} == {"tensorrt", "nvrtc-11.1"}


def test_names_follow_from_the_version() -> None:
    section = STACK.section(TensorrtSection)
    assert (section.number, section.libraries) == (7203, ("libnvinfer.so.7", "libnvinfer_plugin.so.7"))
    assert (section.nvrtc.package, section.nvrtc.library) == ("cuda-nvrtc-11-1", "libnvrtc.so.11.1")


@pytest.mark.parametrize(
    ("part", "values", "rule"),
    [
        ("tensorrt", {"version": "8.6.1.6"}, "tensorrt"),
        ("cudnn", {"version": "8.6.0.163"}, "tensorrt-cudnn"),
        ("cuda", {"version": "11.8.0"}, "tensorrt-cuda"),
        ("tensorflow", {"version": "2.12.1"}, "tensorrt-tensorflow"),
    ],
)
def test_what_does_not_go_with_it_is_refused(part: str, values: dict[str, object], rule: str) -> None:
    assert check_stack(STACK) == []
    assert rule in {misfit.rule for misfit in check_stack(with_values(STACK, **{part: values}))}


@pytest.mark.parametrize("version", ["2.9.3", "2.10.1", "2.11.1"])
def test_it_goes_with_the_tensorflows_that_open_its_name(version: str) -> None:
    misfits = check_stack(with_values(STACK, tensorflow={"version": version}))
    assert "tensorrt-tensorflow" not in {misfit.rule for misfit in misfits}


def test_audits_compare_what_programs_get() -> None:
    assert {one.name: one.want for one in audit_values(Tensorrt(), WANTED)} == {
        "libnvinfer": "7.2.3",
        "libnvinfer from": f"{PREFIX}/lib/libnvinfer.so.7",
        "libnvinfer_plugin": "7.2.3",
        "libnvinfer_plugin from": f"{PREFIX}/lib/libnvinfer_plugin.so.7",
        "nvrtc": "11.1.105-1",
        "nvrtc hold": "held",
    }
