"""The lab's vendor files: what is built from what, and the stack file that names them. Nothing is downloaded here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hostwright.standard.roles.nccl.section import NcclSection
from hostwright.standard.roles.tensorrt.section import TensorrtSection
from lab import stack
from lab.config import CHECKOUT
from lab.vendor import cuda, cudnn, nccl, tensorrt
from lab.vendor.cuda_packages import PACKAGES
from lab.vendor.model import (
    Profile,
    VendorFile,
    build_once,
    describe,
    recipe_key,
    write_manifest,
)
from lab.vendor.packaging import REPACKAGED, STAND_IN, Control
from tests.unit.support.stacks import check_stack, load_stack

FINGERPRINT = "0123456789ABCDEF0123456789ABCDEF01234567"
BY_NAME = {package.name: package for package in PACKAGES}


def closure(name: str) -> set[str]:
    """Return everything that installing a package of the CUDA repository would bring."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += [each.split()[0] for each in BY_NAME[one].depends]
    return found


def one_file(text: str) -> Callable[[Path], list[VendorFile]]:
    def make(work: Path) -> list[VendorFile]:
        path = work / "file.bin"
        path.write_text(text)
        return [describe(path, artifact="thing", version="1", stand_in=True, note="a test's file")]

    return make


def refuse(_work: Path) -> list[VendorFile]:
    raise AssertionError("built although it was there")


class TestBuildOnce:
    def test_the_same_recipe_is_built_once(self, tmp_path: Path) -> None:
        first = build_once(tmp_path, "thing", "key", one_file("a"))
        assert build_once(tmp_path, "thing", "key", refuse) == first
        assert (tmp_path / "file.bin").read_text() == "a"

    def test_a_changed_recipe_replaces_the_file(self, tmp_path: Path) -> None:
        build_once(tmp_path, "thing", "key", one_file("a"))
        build_once(tmp_path, "thing", "other key", one_file("b"))
        assert (tmp_path / "file.bin").read_text() == "b"

    def test_a_file_that_lost_bytes_is_built_again(self, tmp_path: Path) -> None:
        build_once(tmp_path, "thing", "key", one_file("abc"))
        (tmp_path / "file.bin").write_text("a")
        build_once(tmp_path, "thing", "key", one_file("abc"))
        assert (tmp_path / "file.bin").read_text() == "abc"

    def test_a_cut_build_leaves_nothing_that_counts(self, tmp_path: Path) -> None:
        def cut(work: Path) -> list[VendorFile]:
            (work / "file.bin").write_text("half")
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            build_once(tmp_path, "thing", "key", cut)
        assert [path.name for path in tmp_path.iterdir()] == [".recipes"]
        assert [file.size for file in build_once(tmp_path, "thing", "key", one_file("ab"))] == [2]

    def test_the_key_follows_code_profile_and_inputs(self, tmp_path: Path) -> None:
        source = tmp_path / "recipe.py"
        source.write_text("one")
        key = recipe_key(Profile.SMALL, [source], version="1")
        assert key == recipe_key(Profile.SMALL, [source], version="1")
        assert key != recipe_key(Profile.FULL, [source], version="1")
        assert key != recipe_key(Profile.SMALL, [source], version="2")
        source.write_text("two")
        assert key != recipe_key(Profile.SMALL, [source], version="1")


class TestCudaPackages:
    def test_cuda_11_2_drags_in_the_driver_and_the_toolkit_does_not(self) -> None:
        drivers = {package.name for package in PACKAGES if package.driver}
        assert {"cuda-drivers", "nvidia-driver-460", "libnvidia-compute-460"} <= closure("cuda-11-2")
        assert not closure("cuda-toolkit-11-2") & drivers

    def test_only_real_files_are_called_nvidias_own(self) -> None:
        def stand_in(name: str, profile: Profile) -> str:
            return cuda._control(BY_NAME[name], profile).stand_in

        assert stand_in("cuda-nvcc-11-2", Profile.SMALL) == REPACKAGED
        assert stand_in("libcublas-11-2", Profile.SMALL) == STAND_IN
        assert stand_in("libcublas-11-2", Profile.FULL) == REPACKAGED
        assert stand_in("nvidia-driver-460", Profile.FULL) == STAND_IN


class TestPackaging:
    def test_a_control_file_says_that_it_stands_in(self) -> None:
        text = Control("libx", "1-1", "X library", depends="libc6").render(7)
        assert "Package: libx\nVersion: 1-1\nArchitecture: amd64\n" in text
        assert "Depends: libc6\n" in text
        assert "X-Hostwright-Stand-In: yes\n" in text
        assert text.endswith("Description: X library\n Hostwright lab stand-in: has the vendor's package name, "
                             "none of the vendor's files.\n")  # fmt: skip


class TestCudnn:
    def test_each_header_says_that_it_stands_in(self) -> None:
        assert all("hostwright stand-in" in text for text in cudnn.headers().values())


def vendor_file(artifact: str, *, name: str = "", sha256: str = "ab" * 32) -> VendorFile:
    return VendorFile(name or f"{artifact}.bin", artifact, "1", sha256, 5, True, "a stand-in", FINGERPRINT)


class TestStack:
    FILES = (
        *(vendor_file(name) for name in ("driver", "fabric-manager", "cuda-repository", "cuda-pin", "cudnn")),
        vendor_file("container-toolkit-key"),
        vendor_file("container-toolkit", name="apt/nvidia-container-toolkit", sha256=""),
        replace(vendor_file("wheelhouse-3.9"), stand_in=False),
        vendor_file("driver", name="another version"),
    )

    def written(self, tmp_path: Path) -> Path:
        write_manifest(tmp_path, Profile.SMALL, self.FILES)
        return stack.write(tmp_path, tmp_path / "stacks/lab.yml")

    def test_the_stack_with_nccl_and_tensorrt_has_the_same_versions_as_the_standard_one(self, tmp_path: Path) -> None:
        write_manifest(tmp_path, Profile.SMALL, [*self.FILES, *map(vendor_file, stack.OPTIONAL)])
        stacks = [stack.write(tmp_path, tmp_path / "stacks/lab.yml").parent, CHECKOUT / "inventory/stacks"]
        optional, standard = load_stack("lab-nccl-tensorrt", stacks), load_stack(stack.WITH_OPTIONAL, stacks)
        assert check_stack(optional) == []
        assert optional.versions() == standard.versions()
        assert {one.name for one in optional.used_by(["nccl", "tensorrt"])} == set(stack.OPTIONAL)
        assert optional.section(NcclSection).package_version == f"{nccl.VERSION}-1+cuda{nccl.CUDA}"
        assert optional.section(NcclSection).number == nccl.number(nccl.VERSION)
        assert optional.section(TensorrtSection).version == tensorrt.VERSION
        assert optional.section(TensorrtSection).number == tensorrt.NUMBER
        assert {standard.artifact(name).file for name in stack.OPTIONAL} == {
            f"{nccl.RUNTIME}_{nccl.VERSION}-1+cuda{nccl.CUDA}_amd64.deb",
            f"{nccl.DEVELOPMENT}_{nccl.VERSION}-1+cuda{nccl.CUDA}_amd64.deb",
            tensorrt.FILE_NAME,
            f"{tensorrt.NVRTC}_{tensorrt.NVRTC_VERSION}-1_amd64.deb",
        }
