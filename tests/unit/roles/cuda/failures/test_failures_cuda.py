"""Failures of the CUDA toolkit are seen on a host that has them, and on no other."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.audit.failures.rule import FailureRule
from hostwright.audit.judging.context import Unread
from hostwright.plan.model import Answer
from hostwright.resources.packages.packages import DPKG
from hostwright.standard.roles.cuda.failures.installed import CUDA as INSTALLED
from hostwright.standard.roles.cuda.failures.sources import SOURCE_RULES, SOURCES
from hostwright.standard.roles.cuda.failures.toolkits import TOOLKITS, toolkits
from hostwright.standard.roles.driver.failures.loader_cache import LOADER
from tests.unit.support.library_contexts import (
    ALL,
    LINK,
    NVCC,
    OWN,
    PACKAGES,
    PREFIX,
    TREE,
    Differs,
    asked,
    loader,
    look_at,
    planned,
    seen,
    toolkit,
    write,
)

CUDA = (*INSTALLED, *SOURCE_RULES)
RULES = {rule.name: rule for rule in CUDA}
OTHER = toolkit("/usr/local/cuda-11.4")


def found(name: str, differs: Differs | None = None) -> list[str]:
    return seen(RULES[name], look_at(differs))


def fired(differs: Differs) -> list[str]:
    """The names of all rules that see something."""
    ctx = look_at(differs)
    return [rule.name for rule in CUDA if seen(rule, ctx)]


@pytest.mark.parametrize("rule", CUDA, ids=lambda rule: rule.name)
def test_nothing_is_seen_on_a_host_that_is_as_desired(rule: FailureRule) -> None:
    assert planned() == []
    assert seen(rule, look_at()) == []


@pytest.mark.parametrize("rule", CUDA, ids=lambda rule: rule.name)
def test_nothing_is_said_of_a_host_that_was_not_asked(rule: FailureRule) -> None:
    ctx = look_at(dict.fromkeys((*look_at().facts, TREE), None))
    with pytest.raises(Unread):
        seen(rule, ctx)


@pytest.mark.parametrize("rule", CUDA, ids=lambda rule: rule.name)
@given(
    text=st.text(st.characters(codec="utf-8") | st.sampled_from("\t\n :/[]=\x1b"), max_size=300),
    status=st.integers(0, 255),
)
def test_no_answer_breaks_a_rule(rule: FailureRule, text: str, status: int) -> None:
    for probe in (DPKG, SOURCES, TOOLKITS, LOADER, NVCC, TREE):
        prefixed = (
            text,
            f"source\t/etc/apt/a.list\t1\t{text}",
            f"source\t/etc/apt/a.sources\t1\t{text}",
            f"a\tb\tc\t{text}",
        )
        for one in prefixed:
            with suppress(Unread):
                assert all(isinstance(line, str) for line in seen(rule, look_at({probe: Answer(status, one)})))


def test_nothing_fires_on_a_bare_host() -> None:
    bare: Differs = {
        DPKG: "bash\t5.1\tii \n", TOOLKITS: "", TREE: "", NVCC: Answer(127, ""), SOURCES: "", LOADER: loader(names=()),
    }  # fmt: skip
    assert fired(bare) == []


# the toolkit


@pytest.mark.parametrize("meta", ["cuda", "cuda-11-2", "cuda-runtime-11-2"])
def test_a_meta_package_with_its_driver_is_told_whole(meta: str) -> None:
    packages = f"{PACKAGES}{meta}\t11.2.2-1\tii \ncuda-drivers\t460.32.03-1\tii \ncuda-drivers-460\t460.32.03-1\tii \n"
    brought = ["cuda-drivers 460.32.03-1 is installed", "cuda-drivers-460 460.32.03-1 is installed"]
    assert found("cuda-metapackage", {DPKG: packages}) == sorted([f"{meta} 11.2.2-1 is installed", *brought])


@pytest.mark.parametrize("row", ["cuda-drivers\t460\trc ", "cuda-toolkit-11-4\t11.4\tii ", "cuda-nvcc-11-2\t1\tii "])
def test_what_brings_no_driver_is_no_meta_package(row: str) -> None:
    assert found("cuda-metapackage", {DPKG: f"{PACKAGES}{row}\n"}) == []


def test_a_link_to_another_release_is_the_one_finding() -> None:
    differs: Differs = {TOOLKITS: LINK.replace(f"\t{PREFIX}\t", "\t/usr/local/cuda-11.4\t") + OWN + OTHER}
    assert found("cuda-link-other-release", differs) == ["/usr/local/cuda leads to /usr/local/cuda-11.4"]
    assert fired(differs) == ["cuda-link-other-release"]


def test_a_toolkit_in_the_links_place_is_another_one() -> None:
    told = found("cuda-link-other-release", {TOOLKITS: toolkit("/usr/local/cuda") + OWN})
    assert told == ["/usr/local/cuda is a directory, not a link"]


def test_a_link_into_nothing_is_a_warning() -> None:
    differs: Differs = {TOOLKITS: toolkit("/usr/local/cuda", "/usr/local/cuda-11.0", "") + OWN}
    assert fired(differs) == ["cuda-link-broken"]
    assert not RULES["cuda-link-broken"].sign.grave  # type: ignore[union-attr]


def test_another_toolkit_is_told_unless_the_loader_uses_it_which_says_more() -> None:
    assert found("cuda-toolkit-beside", {TOOLKITS: LINK + OWN + OTHER}) == ["/usr/local/cuda-11.4 is a toolkit as well"]
    entry = "libcudart.so.11.0 /usr/local/cuda-11.4/lib64/libcudart.so.11.0"
    assert found("cuda-toolkit-beside", {TOOLKITS: LINK + OWN + OTHER, LOADER: loader(after=[entry])}) == []


def test_purged_leftovers_and_aliases_are_no_second_toolkit() -> None:
    left, alias = toolkit("/usr/local/cuda-11.4", has=""), toolkit("/usr/local/cuda-11", PREFIX)
    assert fired({TOOLKITS: LINK + OWN + left + alias}) == []


@pytest.mark.parametrize(
    ("nvcc", "update"), [("V11.2.67", " (CUDA 11.2.0)"), ("V11.2.142", " (CUDA 11.2.1)"), ("V11.2.9", "")]
)
def test_another_update_of_the_same_release_is_told_by_nvcc(nvcc: str, update: str) -> None:
    said = f"Cuda compilation tools, release 11.2, {nvcc}\nBuild cuda_11.2.r11.2/compiler.29373293_0\n"
    assert found("cuda-update-level", {NVCC: said}) == [
        f"{PREFIX}/bin/nvcc: release 11.2, {nvcc}{update}, and the stack has V11.2.152"
    ]


def test_an_nvcc_that_is_not_there_says_nothing_of_its_version() -> None:
    assert found("cuda-update-level", {NVCC: Answer(127, "")}) == []


def test_a_package_at_its_version_that_is_not_held_is_told() -> None:
    packages = PACKAGES.replace("cuda-nvcc-11-2\t11.2.152-1\thi", "cuda-nvcc-11-2\t11.2.152-1\tii")
    assert found("cuda-not-held", {DPKG: packages}) == ["cuda-nvcc-11-2 11.2.152-1 is not held"]
    moved = packages.replace("cuda-nvcc-11-2\t11.2.152-1", "cuda-nvcc-11-2\t11.2.67-1")
    assert found("cuda-not-held", {DPKG: moved}) == []


def test_a_toolkit_from_the_runfile_is_told_by_its_uninstaller() -> None:
    here = {TOOLKITS: LINK + OWN.replace(ALL, f"{ALL} bin/cuda-uninstaller")}
    assert found("cuda-from-runfile", here) == []
    (line,) = found("cuda-from-runfile", {**here, DPKG: "bash\t5.1\tii \n"})
    assert line == f"{PREFIX}/bin/cuda-uninstaller is there, and cuda-toolkit-11-2 is not installed"


# what is asked, by the machine's own sh


def test_a_host_without_a_toolkit_answers_with_nothing(tmp_path: Path) -> None:
    assert asked(TOOLKITS, tmp_path, "/usr/local/cuda") == Answer(0, "")


def test_toolkits_are_seen_as_they_lie(tmp_path: Path) -> None:
    local = tmp_path / "usr/local"
    home = local / "cuda-11.2"
    for name in ("bin/nvcc", "targets/x86_64-linux/lib/libcudart.so.11.0"):
        write(home / name)
    header = (
        "#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 1\n#define CUDNN_PATCHLEVEL 0\n#define CUDNN_VERSION (CUDNN_MAJOR)"
    )
    write(home / "include/cudnn_version.h", f"#ifndef CUDNN_VERSION_H_\n{header}\n")
    (local / "cuda").symlink_to("cuda-11.2")
    (local / "cuda-11.0").symlink_to("gone")
    (local / "cuda-10.1").mkdir()
    read = toolkits(look_at({TOOLKITS: asked(TOOLKITS, tmp_path, "/usr/local/cuda")}))
    assert {path: (one.leads, one.usable, one.cudnn) for path, one in read.items()} == {
        "/usr/local/cuda": (PREFIX, True, "8.1.0"),
        "/usr/local/cuda-10.1": ("/usr/local/cuda-10.1", False, ""),
        "/usr/local/cuda-11.0": ("/usr/local/gone", False, ""),
        PREFIX: (PREFIX, True, "8.1.0"),
    }
    assert read[PREFIX].has == {"bin/nvcc", "include/cudnn_version.h", "libcudart"}
