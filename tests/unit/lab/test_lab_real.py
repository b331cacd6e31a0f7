"""The lab's files with NVIDIA's own bytes: how they are put together, here from made-up ones, and who has them."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from hostwright.common.errors import LabError
from hostwright.standard.roles.cudnn.section import CudnnSection
from hostwright.standard.roles.driver.section import DriverSection
from lab import hardware, inventory, stack
from lab.config import CHECKOUT, HostOptions, Lab
from lab.hardware import Hardware
from lab.records import HostRecord
from lab.vendor import driver, interpreter, real_cudnn, real_driver
from lab.vendor.model import Profile, VendorFile, write_manifest
from tests.unit.lab.test_lab_vendor import TestStack, vendor_file
from tests.unit.support.stacks import check_stack, load_stack

WRAPPER = Path("usr/local/sbin/rmmod")


@pytest.fixture
def packages(tmp_path: Path) -> dict[str, Path]:
    """What is taken from Debian's packages, with the places of the archive's version."""
    trees = {package: tmp_path / package for package in real_driver.wanted()}
    for package, patterns in real_driver.wanted().items():
        for pattern in patterns:
            name = pattern.removeprefix("./").replace("so.*", f"so.{real_driver.VERSION}").replace("/*", "/Kbuild")
            (trees[package] / name).parent.mkdir(parents=True)
            (trees[package] / name).write_text(package)
    source = trees["nvidia-tesla-470-kernel-dkms"] / f"usr/src/nvidia-tesla-470-{real_driver.VERSION}"
    (source / "nvidia").mkdir()
    (source / "nvidia/nv.c").touch()
    (source / "patches").mkdir()
    (source / "patches/debian.patch").touch()
    (source / "dkms.conf").write_text("PATCH=(debian.patch)")
    return trees


class TestDriver:
    def test_every_file_has_a_place_and_is_in_the_archive(self, tmp_path: Path, packages: dict[str, Path]) -> None:
        archive = tmp_path / "archive"
        archive.mkdir()
        driver.installer(archive, real_driver.VERSION)
        (archive / "README.txt").touch()
        lines = [line.split() for line in real_driver.fill(archive, packages)]
        files = {target: source for kind, _, source, target in (line for line in lines if line[0] == "file")}
        assert all((archive / name).is_file() for name in files.values() if name != "kernel/dkms.conf.filled")
        assert files["/usr/bin/nvidia-smi"] == "nvidia-smi"
        assert files["/usr/src/nvidia-470.256.02/nvidia/nv.c"] == "kernel/nvidia/nv.c"
        links = {link: target for kind, target, link in (line for line in lines if line[0] == "link")}
        assert links["/usr/lib/x86_64-linux-gnu/libcuda.so.1"] == "libcuda.so.470.256.02"

    def test_debians_patches_are_left_out(self, tmp_path: Path, packages: dict[str, Path]) -> None:
        archive = tmp_path / "archive"
        archive.mkdir()
        assert not [line for line in real_driver.fill(archive, packages) if "patch" in line]
        assert "PATCH" not in (archive / "kernel/dkms.conf").read_text()

    def test_another_version_of_debians_is_refused(self, tmp_path: Path, packages: dict[str, Path]) -> None:
        source = packages["nvidia-tesla-470-kernel-dkms"] / "usr/src"
        (source / "nvidia-tesla-470-470.256.02").rename(source / "nvidia-tesla-470-470.999.01")
        with pytest.raises(LabError, match=r"not of version 470\.256\.02"):
            real_driver.fill(tmp_path / "archive", packages)


class TestCudnn:
    def wheel(self, path: Path, *names: str) -> Path:
        with zipfile.ZipFile(path, "w") as packed:
            for name in names:
                packed.writestr(f"nvidia/cudnn/{name}", name)
        return path

    def test_the_wheels_files_get_the_archives_names_and_links(self, tmp_path: Path) -> None:
        names = ("lib/libcudnn.so.8", "lib/libcudnn_ops_infer.so.8", "include/cudnn.h", "include/cudnn_version.h")
        wheel = self.wheel(tmp_path / "a.whl", *names, "lib/__init__.py", "__init__.py")
        real_cudnn.unpack(wheel, tmp_path / "tree")
        lib = tmp_path / "tree/lib"
        assert (lib / "libcudnn.so").readlink() == Path("libcudnn.so.8")
        assert (lib / "libcudnn.so.8").readlink() == Path("libcudnn.so.8.6.0")
        assert (lib / "libcudnn_ops_infer.so.8.6.0").read_text() == "lib/libcudnn_ops_infer.so.8"
        assert {path.name for path in (tmp_path / "tree/include").iterdir()} == {"cudnn.h", "cudnn_version.h"}
        assert len(list(lib.iterdir())) == 6

    def test_a_wheel_without_headers_is_refused(self, tmp_path: Path) -> None:
        wheel = self.wheel(tmp_path / "a.whl", "lib/libcudnn.so.8")
        with pytest.raises(LabError, match=r"does not have include/cudnn\.h"):
            real_cudnn.unpack(wheel, tmp_path / "tree")


class TestStacks:
    @pytest.fixture
    def stacks(self, tmp_path: Path) -> list[Path]:
        more = [vendor_file(f"{name}-470.256.02", name=f"{name}.new") for name in ("driver", "fabric-manager")]
        write_manifest(tmp_path, Profile.SMALL, [*TestStack.FILES, *more, vendor_file(interpreter.ARTIFACT)])
        base = stack.write(tmp_path, tmp_path / "stacks/lab.yml")
        stack.write_real(self.file("driver", "470.256.02", stand_in=True), tmp_path / "real", base)
        stack.write_real(self.file("cudnn", "8.6.0.163", stand_in=False), tmp_path / "real", base)
        return [base.parent, CHECKOUT / "inventory/stacks"]

    def file(self, artifact: str, version: str, *, stand_in: bool) -> VendorFile:
        return replace(vendor_file(artifact, name=f"{artifact}.real"), version=version, stand_in=stand_in)

    @pytest.mark.parametrize("name", ["lab-real-driver", "lab-debian12-real-driver"])
    def test_the_real_driver_takes_the_place_of_the_newer_one(self, stacks: list[Path], name: str) -> None:
        loaded = load_stack(name, stacks)
        assert check_stack(loaded) == []
        assert loaded.section(DriverSection).version == real_driver.VERSION
        assert loaded.artifact("driver").file == "driver.real"
        assert loaded.artifact("driver").stand_in  # its installer is
        assert loaded.artifact("cudnn").file == "cudnn.bin"

    @pytest.mark.parametrize("name", ["lab-real-cudnn", "lab-debian12-real-cudnn"])
    def test_the_real_cudnn_is_no_stand_in_and_has_no_tensorflow_above_it(self, stacks: list[Path], name: str) -> None:
        loaded = load_stack(name, stacks)
        assert check_stack(loaded) == []
        assert (loaded.section(CudnnSection).number, loaded.artifact("cudnn").stand_in) == (8600, False)
        assert "tensorflow" not in loaded.roles

    @pytest.mark.parametrize(
        ("options", "name"),
        [
            (HostOptions(), "lab"),
            (HostOptions(real="driver"), "lab-real-driver"),
            (HostOptions(distro="bookworm", real="cudnn"), "lab-debian12-real-cudnn"),
        ],
    )
    def test_a_host_has_the_stack_of_its_distribution_and_of_what_is_real(
        self, tmp_path: Path, options: HostOptions, name: str
    ) -> None:
        record = HostRecord("gpu01", 1, "base", "key", options.to_json())
        found = inventory.inventory(Lab(root=tmp_path), {"gpu01": record})["lab"]
        assert found["hosts"]["gpu01"].get("stack", found["vars"]["stack"]) == name


def test_where_the_driver_is_real_nothing_stands_in_for_the_kernel(tmp_path: Path) -> None:
    for modules in (True, False):
        root = tmp_path / str(modules)
        hardware.install(root, Hardware(), "gpu01", modules=modules)
        assert (root / WRAPPER).exists() == (root / "etc/modprobe.d/hostwright-lab.conf").exists() == modules
        assert (root / "opt/hostwright-lab/hardware/pci/0000:3b:00.0/vendor").read_text() == "0x10de\n"
