"""The lab's vendor files: what is built from what, and the stack file that names them. Nothing is downloaded here."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from hostwright.common.errors import LabError
from hostwright.standard.roles.container.section import ContainerSection
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.cudnn.section import CudnnSection
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.nccl.section import NcclSection
from hostwright.standard.roles.tensorflow.section import TensorflowSection
from hostwright.standard.roles.tensorrt.section import TensorrtSection
from lab import stack
from lab.config import CHECKOUT
from lab.vendor import BUILDERS, cuda, cuda_packages, cudnn, debian, interpreter, nccl, tensorrt, toolkit, wheels
from lab.vendor.cuda_packages import PACKAGES
from lab.vendor.model import (
    Profile,
    VendorFile,
    build_once,
    describe,
    read_manifest,
    recipe_key,
    write_manifest,
)
from lab.vendor.packaging import REPACKAGED, STAND_IN, Control, write_repository
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

    def test_what_a_killed_build_left_is_removed(self, tmp_path: Path) -> None:
        (tmp_path / ".thing.abc123/half").mkdir(parents=True)
        build_once(tmp_path, "thing", "key", one_file("a"))
        assert sorted(path.name for path in tmp_path.iterdir()) == [".recipes", "file.bin"]

    def test_a_directory_replaces_the_former_one(self, tmp_path: Path) -> None:
        def repository(name: str) -> Callable[[Path], list[VendorFile]]:
            def make(work: Path) -> list[VendorFile]:
                (work / "apt/it").mkdir(parents=True)
                (work / "apt/it" / name).write_text("x")
                return [describe(work / "apt/it", name="apt/it", artifact="a", version="1", stand_in=True, note="n")]

            return make

        build_once(tmp_path, "it", "1", repository("old"))
        build_once(tmp_path, "it", "2", repository("new"))
        assert [path.name for path in (tmp_path / "apt/it").iterdir()] == ["new"]

    def test_the_key_follows_code_profile_and_inputs(self, tmp_path: Path) -> None:
        source = tmp_path / "recipe.py"
        source.write_text("one")
        key = recipe_key(Profile.SMALL, [source], version="1")
        assert key == recipe_key(Profile.SMALL, [source], version="1")
        assert key != recipe_key(Profile.FULL, [source], version="1")
        assert key != recipe_key(Profile.SMALL, [source], version="2")
        source.write_text("two")
        assert key != recipe_key(Profile.SMALL, [source], version="1")


class TestManifest:
    def test_a_written_manifest_is_read_back(self, tmp_path: Path) -> None:
        files = [vendor_file("cudnn"), vendor_file("driver")]
        write_manifest(tmp_path, Profile.FULL, files)
        assert read_manifest(tmp_path) == (Profile.FULL, files)

    def test_without_one_the_error_says_what_to_run(self, tmp_path: Path) -> None:
        with pytest.raises(LabError, match="build the vendor files first"):
            read_manifest(tmp_path)

    def test_every_builder_is_a_module(self) -> None:
        assert all((Path(cuda.__file__).parent / f"{name}.py").is_file() for name in BUILDERS)


class TestCudaPackages:
    def test_every_dependency_is_in_the_repository(self) -> None:
        named = {each.split()[0] for package in PACKAGES for each in package.depends}
        assert named <= BY_NAME.keys()

    def test_cuda_11_2_drags_in_the_driver_and_the_toolkit_does_not(self) -> None:
        drivers = {package.name for package in PACKAGES if package.driver}
        assert {"cuda-drivers", "nvidia-driver-460", "libnvidia-compute-460"} <= closure("cuda-11-2")
        assert not closure("cuda-toolkit-11-2") & drivers

    def test_the_toolkit_brings_every_library_that_tensorflow_opens(self) -> None:
        libraries = {each.soname_link for name in closure("cuda-toolkit-11-2") for each in BY_NAME[name].libraries}
        opened = load_stack("tensorflow-2.9", [CHECKOUT / "inventory/stacks"]).section(TensorflowSection).libraries
        assert {name for name, layer in opened.items() if layer == "cuda"} <= libraries

    def test_the_versions_are_those_of_the_stack(self) -> None:
        wanted = load_stack("tensorflow-2.9", [CHECKOUT / "inventory/stacks"])
        assert BY_NAME[wanted.section(CudaSection).package].version == wanted.section(CudaSection).package_version
        assert {name: BY_NAME[name].version for name in wanted.section(CudaSection).components} == dict(
            wanted.section(CudaSection).components
        )
        assert wanted.artifact(wanted.section(CudaSection).repository.artifact).file == cuda.FILE_NAME
        assert wanted.artifact(wanted.section(CudnnSection).artifact).file == cudnn.FILE_NAME
        assert wanted.section(ContainerSection).toolkit.version == toolkit.PINNED

    def test_the_small_profile_fetches_no_math_library(self) -> None:
        math = {library.debian for package in PACKAGES if package.math for library in package.libraries}
        assert not cuda._wanted(Profile.SMALL).keys() & math
        assert cuda._wanted(Profile.FULL).keys() >= math

    def test_only_real_files_are_called_nvidias_own(self) -> None:
        def stand_in(name: str, profile: Profile) -> str:
            return cuda._control(BY_NAME[name], profile).stand_in

        assert stand_in("cuda-nvcc-11-2", Profile.SMALL) == REPACKAGED
        assert stand_in("libcublas-11-2", Profile.SMALL) == STAND_IN
        assert stand_in("libcublas-11-2", Profile.FULL) == REPACKAGED
        assert stand_in("nvidia-driver-460", Profile.FULL) == STAND_IN

    def test_headers_go_to_one_package_each(self) -> None:
        last = [package.name for package in PACKAGES if any("include/**" in take.pattern for take in package.takes)]
        assert last[-1] == "cuda-cudart-dev-11-2"
        claimed = [take.pattern for package in PACKAGES for take in package.takes if take.debian == cuda_packages.DEV]
        assert len(claimed) == len(set(claimed))


class TestPackaging:
    def test_a_control_file_says_that_it_stands_in(self) -> None:
        text = Control("libx", "1-1", "X library", depends="libc6").render(7)
        assert "Package: libx\nVersion: 1-1\nArchitecture: amd64\n" in text
        assert "Depends: libc6\n" in text
        assert "X-Hostwright-Stand-In: yes\n" in text
        assert text.endswith("Description: X library\n Hostwright lab stand-in: has the vendor's package name, "
                             "none of the vendor's files.\n")  # fmt: skip

    def test_a_repository_lists_each_package_with_its_checksum(self, tmp_path: Path) -> None:
        (tmp_path / "a_1_amd64.deb").write_bytes(b"abc")
        write_repository(tmp_path, {"a_1_amd64.deb": "Package: a\nVersion: 1\n"}, origin="NVIDIA", label="NVIDIA CUDA")
        packages = (tmp_path / "Packages").read_text()
        assert "Filename: ./a_1_amd64.deb\nSize: 3\nSHA256: ba7816bf8f01cfea" in packages
        assert "Label: NVIDIA CUDA\n" in (tmp_path / "Release").read_text()

    def test_a_pattern_that_another_one_covers_is_not_asked_for(self) -> None:
        assert debian._widest(["./usr/include/*", "./usr/include/cublas*.h", "./usr/lib/x.a"]) == [
            "./usr/include/*",
            "./usr/lib/x.a",
        ]


class TestCudnn:
    def test_the_version_header_says_8_1_0(self) -> None:
        lines = cudnn.headers()["cudnn_version.h"].splitlines()
        assert {"#define CUDNN_MAJOR 8", "#define CUDNN_MINOR 1", "#define CUDNN_PATCHLEVEL 0"} <= set(lines)

    def test_every_header_that_another_includes_is_there(self) -> None:
        headers = cudnn.headers()
        included = {line.split('"')[1] for line in headers["cudnn.h"].splitlines() if line.startswith("#include")}
        assert included <= headers.keys()
        assert len(headers) == 9

    def test_each_header_says_that_it_stands_in(self) -> None:
        assert all("hostwright stand-in" in text for text in cudnn.headers().values())


class TestWheels:
    def test_the_same_wheels_make_the_same_tar(self, tmp_path: Path) -> None:
        wheel = tmp_path / "a-1-py3-none-any.whl"
        wheel.write_bytes(b"wheel")
        wheels.pack([wheel], tmp_path / "one.tar")
        wheel.touch()
        wheels.pack([wheel], tmp_path / "two.tar")
        assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
        with tarfile.open(tmp_path / "one.tar") as tar:
            assert tar.getnames() == ["a-1-py3-none-any.whl"]

    def test_the_pins_are_exact_and_import_tensorflow_2_9(self) -> None:
        for house in wheels.HOUSES:
            lines = [line for line in house.constraints.read_text().splitlines() if line and not line.startswith("#")]
            pins = dict(line.split("==") for line in lines)
            assert pins["tensorflow"] == house.version
            assert pins["numpy"].startswith("1.")
            assert pins["protobuf"].startswith("3.19.")
            assert {"setuptools", "wheel"} <= pins.keys()

    def test_wheels_of_former_pins_go_and_of_these_stay(self, tmp_path: Path) -> None:
        names = [f"wheelhouse-{wheels._key(house)}.tar" for house in wheels.HOUSES]
        for name in [*names, "wheelhouse-0123456789.tar"]:
            (tmp_path / name).touch()
        (tmp_path / "wheels-0123456789").mkdir()
        wheels._forget_others(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == set(names)


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

    def test_it_loads_over_the_real_stack(self, tmp_path: Path) -> None:
        path = self.written(tmp_path)
        loaded = load_stack("lab", [path.parent, CHECKOUT / "inventory/stacks"])
        driver = loaded.artifact("driver")
        assert driver.urls == ((tmp_path / "driver.bin").as_uri(),)
        assert driver.stand_in
        assert not loaded.artifact("wheelhouse-3.9").stand_in
        assert loaded.section(TensorflowSection).wheelhouses == {"3.9": "wheelhouse-3.9"}
        assert (
            loaded.section(ContainerSection).toolkit.repository.uri
            == "file:/opt/hostwright-lab/apt/nvidia-container-toolkit"
        )
        assert loaded.section(CudaSection).repository.fingerprint == FINGERPRINT
        assert loaded.section(CudaSection).package_version == "11.2.2-1"

    def test_the_stacks_to_upgrade_to_lie_beside_it(self, tmp_path: Path) -> None:
        more = [vendor_file(f"{name}-470.256.02", name=f"{name}.new") for name in ("driver", "fabric-manager")]
        write_manifest(tmp_path, Profile.SMALL, [*self.FILES, *more, vendor_file(wheels.UPGRADE.artifact)])
        stacks = [stack.write(tmp_path, tmp_path / "stacks/lab.yml").parent, CHECKOUT / "inventory/stacks"]
        base, driver, tensorflow = (load_stack(name, stacks) for name in ("lab", "lab-470.256", "lab-2.9.3"))
        assert check_stack(driver) == check_stack(tensorflow) == []
        assert (driver.section(DriverSection).version, driver.section(DriverSection).kernels) == (
            "470.256.02",
            base.section(DriverSection).kernels,
        )
        assert driver.artifact("driver").urls == ((tmp_path / "driver.new").as_uri(),)
        assert (driver.section(CudaSection), driver.section(TensorflowSection)) == (
            base.section(CudaSection),
            base.section(TensorflowSection),
        )
        assert (
            tensorflow.section(DriverSection),
            tensorflow.section(CudaSection),
            tensorflow.section(CudnnSection),
        ) == (base.section(DriverSection), base.section(CudaSection), base.section(CudnnSection))
        assert tensorflow.section(TensorflowSection).wheelhouses == {"3.9": wheels.UPGRADE.artifact}
        assert "\ntensorflow==2.9.3\n" in tensorflow.section(TensorflowSection).constraints["3.9"]

    def test_debian_12_has_the_newer_driver_and_a_python_of_its_own(self, tmp_path: Path) -> None:
        more = [vendor_file(f"{name}-470.256.02", name=f"{name}.new") for name in ("driver", "fabric-manager")]
        write_manifest(tmp_path, Profile.SMALL, [*self.FILES, *more, vendor_file(interpreter.ARTIFACT)])
        stacks = [stack.write(tmp_path, tmp_path / "stacks/lab.yml").parent, CHECKOUT / "inventory/stacks"]
        debian12 = load_stack("lab-debian12", stacks)
        assert check_stack(debian12) == []
        assert debian12.distributions["debian"] == ("12",)
        assert load_stack("lab", stacks).distributions["debian"] == ("11",)
        assert debian12.section(DriverSection).version == "470.256.02"
        assert interpreter.ARTIFACT in {artifact.name for artifact in debian12.used_by(["tensorflow"])}
        assert interpreter.ARTIFACT not in {file.name for file in load_stack("lab", stacks).used_by(["tensorflow"])}

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

    def test_an_upgrade_without_its_files_is_not_written(self, tmp_path: Path) -> None:
        assert [path.name for path in self.written(tmp_path).parent.iterdir()] == ["lab.yml"]

    def test_a_directory_is_no_artifact(self, tmp_path: Path) -> None:
        assert "container-toolkit" not in yaml.safe_load(self.written(tmp_path).read_text())["artifacts"]

    def test_an_unchanged_stack_is_not_written_again(self, tmp_path: Path) -> None:
        before = self.written(tmp_path).stat().st_mtime_ns
        assert self.written(tmp_path).stat().st_mtime_ns == before

    def test_a_manifest_without_the_driver_is_refused_by_name(self, tmp_path: Path) -> None:
        rest = [file for file in self.FILES if file.artifact != "driver"]
        with pytest.raises(LabError, match="lack driver; build them again"):
            stack.compose(rest, tmp_path, "small")
