"""The lab's files with NVIDIA's own bytes: how they are put together, here from made-up ones, and who has them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hostwright.standard.roles.cudnn.section import CudnnSection
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.pytorch.section import PytorchSection
from lab import hardware, inventory, stack
from lab.config import CHECKOUT, HostOptions, Lab
from lab.hardware import Hardware
from lab.records import HostRecord
from lab.vendor import driver, interpreter, real_driver, repackaged
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


class TestStacks:
    @pytest.fixture
    def stacks(self, tmp_path: Path) -> list[Path]:
        more = [vendor_file(f"{name}-470.256.02", name=f"{name}.new") for name in ("driver", "fabric-manager")]
        more.append(vendor_file(f"driver-{driver.TODAY}", name="driver.today"))
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

    def test_a_published_stack_has_the_labs_driver_and_its_own_wheels(self, stacks: list[Path]) -> None:
        name = stack.write_published(stacks[0] / "lab.yml", "pytorch-2.14", "pytorch", "3.11").stem
        loaded, published = load_stack(name, stacks), load_stack("pytorch-2.14", stacks)
        assert check_stack(loaded) == []
        assert loaded.versions() == published.versions()
        assert loaded.artifact("driver").stand_in
        section, own = loaded.section(PytorchSection), published.section(PytorchSection)
        assert (section.usable, section.pins("3.11")) == (("3.11",), own.pins("3.11"))
        assert section.constraints == {"3.11": own.constraints["3.11"]}

    def test_stacks_of_today_have_their_driver_from_debians_files_and_say_so(self, stacks: list[Path]) -> None:
        said = "repackaged: the files are 550.163.01's"
        key = replace(self.file(repackaged.ARTIFACT, "550.163.01", stand_in=True), note=said)
        stack.write_repackaged(stacks[0] / "lab.yml", key, stacks[0])
        today = stack.of_today()
        assert {"pytorch-2.14", "pytorch-2.15-r620"} <= set(today)
        for name, version in today.items():
            loaded = load_stack(f"lab-repackaged-{name}", stacks)
            assert check_stack(loaded) == []
            assert loaded.versions() == load_stack(name, stacks).versions()
            section = loaded.section(DriverSection)
            assert (section.version, section.kind, set(section.packages.values())) == (
                version,
                "open",
                {f"{version}-1"},
            )
            assert loaded.stand_ins(["driver"]) == (f"{key.name} ({said})",)

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
