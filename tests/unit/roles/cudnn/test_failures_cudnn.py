"""Failures of cuDNN are seen on a host that has them, and on no other."""

from __future__ import annotations

import pytest

from hostwright.resources.packages.packages import DPKG
from hostwright.standard.roles.cuda.failures.toolkits import TOOLKITS
from hostwright.standard.roles.cudnn.failures import FAILURES
from hostwright.standard.roles.driver.failures.loader_cache import LOADER
from tests.unit.support.library_contexts import (  # fmt: skip
    CUDNN,
    LIB,
    LINK,
    OWN,
    PACKAGES,
    PARTS,
    PREFIX,
    SONAMES,
    STRAYS,
    TREE,
    Differs,
    library,
    loader,
    look_at,
    seen,
    tree,
)

RULES = [rule for rule in FAILURES if rule.sign]
WITHOUT_CUDNN = {TREE: tree(SONAMES), LOADER: loader(names=SONAMES)}


def found(name: str, differs: Differs | None = None) -> list[str]:
    return seen(next(rule for rule in RULES if rule.name == name), look_at(differs))


def fired(differs: Differs) -> list[str]:
    """The names of all rules that see something."""
    ctx = look_at(differs)
    return [rule.name for rule in RULES if seen(rule, ctx)]


def flattened(*names: str) -> str:
    lines = [library(f"{LIB}/{name}") for name in names]
    keep = [
        line
        for line in tree({**SONAMES, **CUDNN}).splitlines(True)
        if line.split("\t")[3].rpartition("/")[2] not in names
    ]
    return "".join([*keep, *lines])


def test_copies_where_links_belong_are_told() -> None:
    differs: Differs = {TREE: flattened("libcudnn.so", "libcudnn.so.8")}
    assert found("library-not-a-link", differs) == [
        f"{LIB}/libcudnn.so is a file of 1000 bytes, not a link",
        f"{LIB}/libcudnn.so.8 is a file of 1000 bytes, not a link",
    ]
    assert fired(differs) == ["library-not-a-link"]


def cudnn_at(version: str) -> dict[str, str]:
    return {f"libcudnn{part}.so.8": f"libcudnn{part}.so.{version}" for part in PARTS}


def test_another_cudnn_is_told_once_for_each_of_its_libraries() -> None:
    differs: Differs = {TREE: tree({**SONAMES, **cudnn_at("8.3.0")}), TOOLKITS: LINK + OWN.replace("8.1.0", "8.3.0")}
    assert found("cudnn-other-version", differs) == [f"{LIB}/libcudnn.so.8.3.0"]
    assert fired(differs) == ["cudnn-other-version"]


def test_apts_cudnn_alone_is_another_version_unless_it_is_the_stacks() -> None:
    differs: Differs = {**WITHOUT_CUDNN, DPKG: f"{PACKAGES}libcudnn8\t8.0.5.39-1+cuda11.1\tii \n"}
    assert found("cudnn-other-version", differs) == ["libcudnn8 8.0.5.39-1+cuda11.1 is installed"]
    same: Differs = {**WITHOUT_CUDNN, DPKG: f"{PACKAGES}libcudnn8\t8.1.0.77-1+cuda11.2\tii \n"}
    assert found("cudnn-other-version", same) == []


CONDA = "libcudnn.so.8 /opt/conda/lib/libcudnn.so.8"
APT = "libcudnn.so.8 /usr/lib/x86_64-linux-gnu/libcudnn.so.8"


@pytest.mark.parametrize("names", [{**SONAMES, **CUDNN}, SONAMES])
@pytest.mark.parametrize("entry", [CONDA, APT])
def test_a_second_cudnn_in_the_loaders_cache_is_told(entry: str, names: dict[str, str]) -> None:
    """tensorflow/docs#2251: conda's; pytorch/pytorch#3896: of a package with another name (libcudnn7)."""
    differs: Differs = {LOADER: loader(entry, names=names), DPKG: f"{PACKAGES}libcudnn7\t8.0.5.39-1+cuda11.1\tii \n"}
    assert found("cudnn-in-loader", differs) == [entry.replace(" ", " => ")]
    assert found("cudnn-in-loader", {LOADER: loader(names=names, after=(entry,))}) == [entry.replace(" ", " => ")]


def test_a_second_cudnn_that_is_told_otherwise_is_told_once() -> None:
    of_apt: Differs = {LOADER: loader(APT), DPKG: f"{PACKAGES}libcudnn8\t8.2.0.53-1+cuda11.3\tii \n"}
    stray: Differs = {LOADER: loader(APT), STRAYS: "/usr/lib/x86_64-linux-gnu/libcudnn.so.8\n"}
    of_toolkit: Differs = {LOADER: loader("libcudnn.so.8 /usr/local/cuda-11.0/lib64/libcudnn.so.8")}
    another: Differs = {
        LOADER: loader("libcudnn.so.9 /usr/lib/x86_64-linux-gnu/libcudnn.so.9", "libcudnn_ops.so.9 /lib/x")
    }
    for differs in (of_apt, stray, of_toolkit, another, {}):
        assert found("cudnn-in-loader", differs) == []
    assert fired(of_apt) == fired(stray) == ["cudnn-mixed"]


@pytest.mark.parametrize(
    "differs",
    [
        {DPKG: f"{PACKAGES}libcudnn8\t8.2.0.53-1+cuda11.3\tii \n"},
        {STRAYS: "/usr/lib/x86_64-linux-gnu/libcudnn_ops_infer.so.8.2.0\n"},
        {TREE: tree({**SONAMES, **CUDNN}, more=library(f"{LIB}/libcudnn_ops_infer.so.8.2.0"))},
    ],
)
def test_two_cudnn_8_are_mixed_wherever_the_second_lies(differs: Differs) -> None:
    evidence = found("cudnn-mixed", differs)
    assert f"{LIB}/libcudnn.so.8.1.0 is 8.1.0" in evidence
    assert any("8.2.0" in line for line in evidence)
    assert fired(differs) == ["cudnn-mixed"]


def test_another_major_version_and_what_was_removed_mix_with_nothing() -> None:
    packages = f"{PACKAGES}libcudnn7\t7.6.5\tii \nlibcudnn8\t8.2.0\trc \n"
    more = library(f"{LIB}/libcudnn.so.7.6.5")
    assert fired({DPKG: packages, TREE: tree({**SONAMES, **CUDNN}, more=more)}) == []


def test_missing_or_different_header_is_reported() -> None:
    without = {TOOLKITS: LINK + OWN.replace("include/cudnn_version.h ", "").replace("8.1.0", "")}
    assert found("cudnn-headers", without) == [f"{PREFIX}/include/cudnn_version.h is not there"]
    other = {TOOLKITS: LINK + OWN.replace("8.1.0", "8.3.0")}
    assert found("cudnn-headers", other) == [f"{PREFIX}/include/cudnn_version.h says 8.3.0, the libraries are 8.1.0"]
    assert found("cudnn-headers", {**without, TREE: tree(SONAMES)}) == []
