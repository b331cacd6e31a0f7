"""A lab, the installed package and a site for the tests of this folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab import fleet
from lab.config import HostOptions, Lab, Machine
from lab.hardware import Hardware
from lab.records import find_machine
from lab.vendor.driver import SOURCES
from lab.vendor.native import Compiler
from tests.lab.conftest import on
from tests.lab.ownlab import own_lab
from tests.lab.site import installed
from tests.lab.site.installed import Site

OURS, PLAIN = "ours01", "plain01"
BARE = HostOptions(profile="small")
#: emulates a loaded distribution driver until the first reboot
VERSION = "470.256.02"
WITH_DRIVER = HostOptions(profile="small", hardware=Hardware(loaded=VERSION))
#: Debian's driver packages: nvidia-smi, libcuda and their dependencies
DRIVER = """
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update >/dev/null
apt-get -qq install -y --no-install-recommends nvidia-tesla-470-smi libnvidia-tesla-470-cuda1 >/dev/null 2>&1
"""
#: NVIDIA's own programs fail without a card: "Failed to initialize NVML: Unknown Error"
DOUBLES = {
    "usr/lib/nvidia/tesla-470/nvidia-smi": "nvidia-smi",
    f"usr/lib/x86_64-linux-gnu/nvidia/tesla-470/libnvidia-ml.so.{VERSION}": "libnvidia-ml.so.1",
}


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """Two hosts that no other test uses: a bare one, and one with its distribution's driver."""
    with own_lab("site") as opened:
        fleet.supply(opened, BARE)
        fleet.up(opened, [OURS], options=BARE)
        fleet.up(opened, [PLAIN], options=WITH_DRIVER)
        yield opened


def install_driver(machine: Machine, work: Path) -> None:
    """Install Debian's driver on a host; its nvidia-smi then reports the lab's card, as a working driver does."""
    on(machine, DRIVER)
    compiler, defines = Compiler(work), {"NV_VERSION": VERSION}
    smi = [SOURCES / name for name in ("nvidia-smi.c", "smi-csv.c", "smi-print.c")]
    nvml = [SOURCES / name for name in ("nvml.c", "machine.c")]
    compiler.program("nvidia-smi", smi, defines)
    compiler.library("libnvidia-ml.so.1", "libnvidia-ml.so.1", nvml, {**defines, "SONAME": "libnvidia-ml.so.1"})
    for path, double in DOUBLES.items():
        assert (machine.merged / path).is_file()
        shutil.copy2(work / double, machine.merged / path)
    assert "Driver Version: " + VERSION in on(machine, "nvidia-smi")


@pytest.fixture(scope="session")
def programs(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed package; meanwhile Debian's driver is installed on its host."""
    with ThreadPoolExecutor(1) as beside:
        driver = beside.submit(install_driver, find_machine(lab, PLAIN), tmp_path_factory.mktemp("doubles"))
        found = installed.install(tmp_path_factory.mktemp("package"))
        driver.result()
    return found


@pytest.fixture(scope="session")
def before(programs: Path) -> dict[str, str]:
    """Checksums of all installed files, before the tests."""
    return installed.fingerprint(programs.parent)


@pytest.fixture(scope="session")
def checkout() -> str:
    """State of the checkout before the tests."""
    return installed.state_of_checkout()


@pytest.fixture(scope="session")
def site(
    lab: Lab, programs: Path, before: dict[str, str], checkout: str, tmp_path_factory: pytest.TempPathFactory
) -> Site:
    """A site with four roles of its own, and the files of its stack."""
    place = tmp_path_factory.mktemp("ours")
    (place / "home").mkdir()
    made = Site(place / "fleet", programs, place / "home")
    installed.write_site(made, lab, {OURS: [], PLAIN: ["base", "chrony"]})
    nccl = installed.archive_nccl(tmp_path_factory.mktemp("nccl"))
    made.run("mirror", "--stack", "ours", "--from", str(nccl))
    return made


@pytest.fixture(scope="session")
def ours(lab: Lab) -> Machine:
    """The host with all roles of the site's stack."""
    return find_machine(lab, OURS)


@pytest.fixture(scope="session")
def plain(lab: Lab) -> Machine:
    """The host with two roles and its distribution's driver."""
    return find_machine(lab, PLAIN)
