"""The stand-in driver behaves as NVIDIA's 470.182.03 does: on real hosts, with real dkms, against made-up cards.

The tests of the first host follow a machine's life in the order in which they stand here: bare, without build tools,
provisioned, upgraded, damaged, cleaned.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hostwright.common.errors import LabError
from lab import fleet, hardware
from lab.config import HostOptions, Lab, Machine, cache_directory
from lab.hardware import A100_SXM, H100, T4, Card, Hardware
from lab.machine import console, exec_in, power_off, start, wait_for_ssh
from lab.records import find_machine
from lab.vendor import driver, fabricmanager, headers
from lab.vendor.model import Profile
from tests.lab.ownlab import own_lab

RUN = f"/root/{driver.file_name(driver.VERSION)}"
RUN_UPGRADE = f"/root/{driver.file_name(driver.UPGRADE)}"
FLAGS = (
    "--silent",
    "--dkms",
    "--no-cc-version-check",
    "--disable-nouveau",
    "--no-install-compat32-libs",
    "--no-check-for-alternate-installs",
)
LOG = "/var/log/nvidia-installer.log"
TOOLS = ("dkms", "gcc", "make", "libc6-dev")


@pytest.fixture(scope="module")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("vendor")
    for builder in (driver, fabricmanager):
        builder.build(out, Profile.SMALL)
    return out


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    repository = cache_directory() / "vendor" / Profile.SMALL
    repository.mkdir(parents=True, exist_ok=True)
    headers.build(repository, Profile.SMALL)
    with own_lab("hwdrv") as opened:
        yield opened


def make(lab: Lab, vendor: Path, name: str, spec: Hardware) -> Machine:
    fleet.up(lab, [name], options=HostOptions(profile="small", hardware=spec))
    machine = find_machine(lab, name)
    for file in vendor.iterdir():
        if file.is_file():
            shutil.copy(file, machine.merged / "root")
    return machine


@pytest.fixture(scope="module")
def host(lab: Lab, vendor: Path) -> Machine:
    """One T4, nothing installed."""
    return make(lab, vendor, "d01", Hardware(cards=(T4,)))


@pytest.fixture(scope="module")
def board(lab: Lab, vendor: Path) -> Machine:
    """An NVSwitch board whose kernel still holds an older module, and a card that R470 does not know."""
    return make(lab, vendor, "d02", Hardware(cards=(A100_SXM, H100), nvswitch=2, loaded=driver.VERSION))


@pytest.fixture(scope="module")
def desktop(lab: Lab, vendor: Path) -> Machine:
    """A host whose distribution's nouveau drives the card."""
    return make(lab, vendor, "d03", Hardware(cards=(T4,), nouveau=True))


def ran(machine: Machine, *argv: str) -> subprocess.CompletedProcess[str]:
    return exec_in(machine, argv)


def install(machine: Machine, *flags: str, run: str = RUN) -> tuple[int, str]:
    """Run the `.run`; return its exit status and its log."""
    done = ran(machine, "sh", run, *(flags or FLAGS))
    return done.returncode, console(machine, "cat", LOG) if (machine.merged / LOG[1:]).exists() else ""


def reboot(machine: Machine) -> None:
    power_off(machine)
    start(machine)
    wait_for_ssh(machine)


def loaded(machine: Machine) -> str:
    return ran(machine, "cat", "/sys/module/nvidia/version").stdout.strip()


def cu_init(machine: Machine) -> int:
    code = "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))"
    return int(console(machine, "python3", "-c", code))


def test_made_up_card_is_on_the_bus_without_a_driver(host: Machine) -> None:
    assert "3D controller: NVIDIA Corporation TU104GL [Tesla T4]" in ran(host, "lspci").stdout
    assert not loaded(host)
    assert ran(host, "ls", "/proc/driver/nvidia").returncode != 0
    assert ran(host, "test", "-e", "/sys/module/kernel").returncode == 0  # the machine's own modules stay visible


@pytest.mark.parametrize(
    "flag", ["--rebuild-initramfs", "--no-dkms", "--kernel-module-type=open", "--skip-module-load"]
)
def test_flags_of_other_branches_end_with_invalid_commandline(host: Machine, flag: str) -> None:
    done = ran(host, "sh", RUN, "--silent", flag)
    assert done.returncode == 1
    assert "Invalid commandline" in done.stderr
    assert not (host.merged / "var/lib/nvidia").exists()


def test_archive_checks_itself_and_notices_a_changed_byte(host: Machine) -> None:
    assert "Verifying archive integrity... OK" in console(host, "sh", RUN, "--check")
    broken = (host.merged / RUN[1:]).read_bytes()[:-1] + b"x"
    (host.merged / "root/broken.run").write_bytes(broken)
    done = ran(host, "sh", "/root/broken.run", "--check")
    assert done.returncode != 0
    assert "checksum" in done.stderr


def test_without_compiler_the_old_way_refuses_before_anything_is_changed(host: Machine) -> None:
    status, log = install(host, "--silent")
    assert status == 1
    assert "Unable to find the development tool `cc`" in log
    assert not (host.merged / "usr/bin/nvidia-smi").exists()


def test_without_dkms_the_dkms_way_fails_after_the_files_are_there(host: Machine) -> None:
    status, log = install(host)
    assert status == 1
    assert "Failed to find dkms on the system!" in log
    assert "Failed to install the kernel module through DKMS. No kernel module was installed" in log
    smi = ran(host, "nvidia-smi")
    assert smi.returncode == 9
    assert "couldn't communicate with the NVIDIA driver" in smi.stdout


def test_without_headers_the_old_way_says_so(host: Machine) -> None:
    console(host, "apt-get", "install", "-y", "-q", "--no-install-recommends", *TOOLS)
    status, log = install(host, "--silent")
    assert status == 1
    assert "Unable to find the kernel source tree for the currently running kernel." in log


def test_headers_package_lets_dkms_compile_and_the_card_answers(host: Machine) -> None:
    release = console(host, "uname", "-r").strip()
    console(host, "apt-get", "install", "-y", "-q", "--no-install-recommends", f"linux-headers-{release}")
    status, log = install(host)
    assert status == 0, log
    assert console(host, "modinfo", "-F", "version", "nvidia").strip() == driver.VERSION
    assert f"nvidia, {driver.VERSION}, {release}, x86_64: installed" in console(host, "dkms", "status")
    assert loaded(host) == driver.VERSION
    assert console(host, "nvidia-smi", "-L").startswith("GPU 0: Tesla T4 (UUID: GPU-")
    assert cu_init(host) == 0


def test_nvidia_smi_answers_as_r470_does(host: Machine) -> None:
    fields = "name,driver_version,memory.total,pci.bus_id,persistence_mode,mig.mode.current"
    rows = console(host, "nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader").splitlines()
    assert rows == [f"Tesla T4, {driver.VERSION}, 15109 MiB, 00000000:3B:00.0, Disabled, [N/A]"]
    unknown = ran(host, "nvidia-smi", "--query-gpu=compute_cap", "--format=csv")  # came with a later branch
    assert (unknown.returncode, unknown.stdout.strip()) == (2, 'Field "compute_cap" is not a valid field to query.')
    document = ElementTree.fromstring(console(host, "nvidia-smi", "-q", "-x"))  # noqa: S314 (our own program's)
    assert document.findtext("gpu/fb_memory_usage/total") == "15109 MiB"
    assert document.findtext("gpu/pci/pci_gpu_link_info/link_widths/current_link_width") == "16x"
    assert "CUDA Version: 11.4" in console(host, "nvidia-smi")
    assert "stand-in" in console(host, "nvidia-smi", "--help")


def test_fabric_manager_has_nothing_to_do_without_switches(host: Machine) -> None:
    console(host, "dpkg", "-i", f"/root/{fabricmanager.PACKAGE}_{driver.VERSION}-1_amd64.deb")
    assert ran(host, "systemctl", "start", "nvidia-fabricmanager").returncode != 0
    assert "[NV_WARN_NOTHING_TO_DO]" in console(host, "cat", "/var/log/fabricmanager.log")
    console(host, "dpkg", "--purge", fabricmanager.PACKAGE)


def test_library_gone_is_an_error_of_its_own(host: Machine) -> None:
    link = host.merged / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
    target = link.readlink()
    console(host, "rm", f"/{link.relative_to(host.merged)}")
    assert ran(host, "nvidia-smi").returncode == 12
    sanity = ran(host, "nvidia-installer", "--sanity", "--silent")
    assert sanity.returncode == 1
    assert "no longer exists" in sanity.stderr
    console(host, "ln", "-s", str(target), f"/{link.relative_to(host.merged)}")
    assert ran(host, "nvidia-installer", "--sanity", "--silent").returncode == 0


def test_persistence_daemon_keeps_the_mode_and_the_module(host: Machine) -> None:
    console(host, "nvidia-persistenced")
    mode = "nvidia-smi", "--query-gpu=persistence_mode", "--format=csv,noheader"
    assert console(host, *mode).strip() == "Enabled"
    assert ran(host, "rmmod", "nvidia_drm", "nvidia_modeset", "nvidia").returncode == 1
    assert "No running processes found" in console(host, "nvidia-smi")
    console(host, "sh", "-c", "kill $(cat /run/nvidia-persistenced/nvidia-persistenced.pid)")
    console(host, "sh", "-c", "while [ -e /run/nvidia-persistenced/nvidia-persistenced.pid ]; do sleep 0.05; done")
    assert console(host, *mode).strip() == "Disabled"


def start_job(machine: Machine) -> None:
    console(machine, "systemd-run", "--quiet", "--unit=job", "sh", "-c", "exec sleep 600 </dev/nvidia0")
    listed = "nvidia-smi --query-compute-apps=name --format=csv,noheader | grep -q sleep"
    console(machine, "timeout", "30", "sh", "-c", f"until {listed}; do sleep 0.1; done")


def test_a_program_on_the_card_is_seen_and_keeps_the_installer_away(host: Machine) -> None:
    start_job(host)
    status, log = install(host, run=RUN_UPGRADE)
    assert status == 1
    assert "An NVIDIA kernel module 'nvidia' appears to already be loaded in your kernel." in log
    assert console(host, "cat", "/var/lib/nvidia/log").startswith(driver.VERSION)  # the old driver is untouched
    console(host, "systemctl", "stop", "job")


def test_upgrade_replaces_module_and_libraries(host: Machine) -> None:
    assert install(host, run=RUN_UPGRADE)[0] == 0
    assert loaded(host) == driver.UPGRADE
    assert driver.VERSION not in console(host, "dkms", "status")
    libraries = console(host, "sh", "-c", "ls /usr/lib/x86_64-linux-gnu | grep 'lib.*nvidia'")
    assert driver.VERSION not in libraries


def test_user_space_replaced_under_a_program_is_a_mismatch_until_the_reboot(host: Machine) -> None:
    start_job(host)
    assert install(host, "--silent", "--no-kernel-module")[0] == 0
    assert loaded(host) == driver.UPGRADE  # in use, so the uninstaller could not take it out
    smi = ran(host, "nvidia-smi")
    assert (smi.returncode, smi.stdout.strip()) == (18, "Failed to initialize NVML: Driver/library version mismatch")
    assert cu_init(host) == 803  # CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
    reboot(host)
    assert not loaded(host)  # the old driver's module is off the disk, and there is no new one
    assert install(host)[0] == 0
    reboot(host)
    assert loaded(host) == driver.VERSION
    assert ran(host, "nvidia-smi").returncode == 0


def test_x_lock_refuses_only_while_its_process_lives(host: Machine) -> None:
    mark = "mkdir -p /usr/lib/nvidia; touch /usr/lib/nvidia/alternate-install-present"  # refuses after the X check
    console(host, "sh", "-c", f"{mark}; printf '%10d\\n' 1 >/tmp/.X0-lock")
    status, log = install(host, "--silent", "--dkms")
    assert status == 1
    assert "You appear to be running an X server; please exit X before installing." in log
    console(host, "sh", "-c", "printf '%10d\\n' 4194305 >/tmp/.X0-lock")  # nobody's: above the largest pid_max
    status, log = install(host, "--silent", "--dkms")
    assert status == 1
    assert "You appear to be running an X server" not in log
    assert "The installation was canceled due to the availability or presence of an alternate driver" in log
    console(host, "sh", "-c", "rm /tmp/.X0-lock")


def test_compiler_of_another_version_fails_dkms_unless_the_check_is_off(host: Machine) -> None:
    compiler = "/usr/bin/gcc-10"  # Debian's dkms takes the kernel's own compiler, whatever cc is
    real = console(host, "readlink", "-f", compiler).strip()
    answer = '[ "$1" != --version ] || { echo "gcc-10 (Debian 10.3.0-1) 10.3.0"; exit; }'
    (host.merged / "usr/local/bin/other").write_text(f'#!/bin/sh\n{answer}\nexec {real} "$@"\n')
    console(host, "sh", "-c", f"chmod +x /usr/local/bin/other; ln -sfn /usr/local/bin/other {compiler}")
    status, log = install(host, "--silent", "--dkms", "--no-check-for-alternate-installs")
    assert status == 1
    assert "Bad return status for module build" in log
    made = console(host, "cat", f"/var/lib/dkms/nvidia/{driver.VERSION}/build/make.log")
    assert "Failed CC version check. Bailing out!" in made
    assert install(host)[0] == 0
    console(host, "sh", "-c", f"rm -r /usr/lib/nvidia; ln -sfn {real} {compiler}")


def test_stale_dkms_tree_fails_the_installation_and_removing_it_mends(host: Machine) -> None:
    console(host, "nvidia-uninstall", "--silent")
    source = f"/usr/src/nvidia-{driver.VERSION}"
    stale = f"PACKAGE_NAME=nvidia\nPACKAGE_VERSION={driver.VERSION}\nBUILT_MODULE_NAME[0]=nvidia\n"
    (host.merged / source[1:]).mkdir()
    (host.merged / source[1:] / "dkms.conf").write_text(f"{stale}DEST_MODULE_LOCATION[0]=/updates\nAUTOINSTALL=yes\n")
    console(host, "dkms", "add", "-m", "nvidia", "-v", driver.VERSION)
    status, log = install(host)
    assert status == 1
    assert f"Error! DKMS tree already contains: nvidia-{driver.VERSION}" in log
    console(host, "dkms", "remove", "-m", "nvidia", "-v", driver.VERSION, "--all")
    assert install(host)[0] == 0
    console(host, "nvidia-uninstall", "--silent")
    console(host, "rm", "-r", source)  # put back by the uninstaller, which had found it there


def test_without_dkms_the_module_is_compiled_for_this_kernel_only(host: Machine) -> None:
    status, log = install(host, "--silent")
    assert status == 0, log
    assert console(host, "modinfo", "-F", "filename", "nvidia").strip().endswith("/kernel/drivers/video/nvidia.ko")
    assert "nvidia" not in console(host, "dkms", "status")


def test_uninstall_gives_back_what_was_in_the_way_and_leaves_nothing(host: Machine) -> None:
    console(host, "nvidia-uninstall", "--silent")
    former = host.merged / "usr/lib/x86_64-linux-gnu/libcuda.so.1"
    former.write_text("a distribution's library\n")
    assert install(host)[0] == 0
    assert former.is_symlink()
    console(host, "nvidia-uninstall", "--silent")
    assert former.read_text() == "a distribution's library\n"
    console(host, "rm", f"/{former.relative_to(host.merged)}")
    known = "! -path '/root/*' ! -path '/var/log/*' ! -path '/usr/src/linux-*'"
    found = f"find / -xdev \\( -path '*nvidia*' -o -name 'libcuda*' \\) {known} ! -name '*disable-nouveau*'"
    assert console(host, "sh", "-c", found).split() == []
    assert not loaded(host)


def test_secure_boot_refuses_the_unsigned_module(host: Machine) -> None:
    hardware.install(host.merged, Hardware(secure_boot=True))
    reboot(host)
    variable = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    assert console(host, "od", "-An", "-tu1", variable).split()[-1] == "1"
    status, log = install(host)
    assert status == 1
    assert "Unable to load the 'nvidia-drm' kernel module." in log
    assert "Key was rejected by service" in log
    assert console(host, "modinfo", "-F", "version", "nvidia").strip() == driver.VERSION


def test_fabric_manager_wants_exactly_the_loaded_version_and_cuda_waits_for_it(board: Machine) -> None:
    assert loaded(board) == driver.VERSION
    assert install(board, "--silent", "--no-kernel-module")[0] == 0
    assert cu_init(board) == 802  # CUDA_ERROR_SYSTEM_NOT_READY
    package = f"/root/{fabricmanager.PACKAGE}_{{}}-1_amd64.deb"
    console(board, "dpkg", "-i", package.format(driver.UPGRADE))
    assert ran(board, "systemctl", "start", "nvidia-fabricmanager").returncode != 0
    said = f"interface version {driver.UPGRADE} don't match with driver version {driver.VERSION}. Please update"
    assert said in console(board, "cat", "/var/log/fabricmanager.log")
    console(board, "dpkg", "-i", package.format(driver.VERSION))
    console(board, "systemctl", "start", "nvidia-fabricmanager")
    assert cu_init(board) == 0


def test_card_newer_than_the_driver_is_on_the_bus_and_not_driven(board: Machine) -> None:
    assert console(board, "lspci", "-d", "10de:", "-n").count("0302: 10de:") == 2
    names = console(board, "nvidia-smi", "--query-gpu=name", "--format=csv,noheader").splitlines()
    assert names == [A100_SXM.name]


def test_module_left_by_an_earlier_driver_is_gone_after_the_first_reboot(board: Machine) -> None:
    reboot(board)
    assert not loaded(board)
    assert ran(board, "nvidia-smi").returncode == 9


def test_nouveau_refuses_the_driver_until_blacklisted_and_rebooted(desktop: Machine) -> None:
    assert "Kernel driver in use: nouveau" in console(desktop, "lspci", "-k")
    status, log = install(desktop)
    assert status == 1
    assert "The Nouveau kernel driver is currently in use by your system." in log
    blacklist = console(desktop, "cat", "/etc/modprobe.d/nvidia-installer-disable-nouveau.conf")
    assert "blacklist nouveau\noptions nouveau modeset=0" in blacklist
    assert install(desktop)[0] == 1  # the file alone does not unbind it
    reboot(desktop)
    assert "nouveau" not in console(desktop, "lspci", "-k")


def test_hardware_survives_json() -> None:
    spec = Hardware(cards=(T4, Card("NVIDIA Test", 1, 2, "v", width=8)), nouveau=True, loaded="470.57.02", nvswitch=1)
    assert Hardware.from_json(json.loads(json.dumps(asdict(spec)))) == spec


def test_unknown_makeself_is_named() -> None:
    with pytest.raises(LabError, match="unknown makeself"):
        driver._nvidia_header("#!/bin/sh\n")
