"""Debian 13 with its own R550, whose open module DKMS builds, and PyTorch's own wheels.

The kernels that Debian 13 has today are too new for that module (`inventory/stacks/debian-13-r550.yml`), so it is built
against the headers of Debian 12's. Packages, firmware, compiler, Python and wheels are the real ones. What stands in is
the kernel's part (a card on the bus, a module that is loaded) and the persistence daemon, which asks the kernel for
cards. Each test goes on where the last one ended.
"""

from __future__ import annotations

import pytest

from hostwright.common.errors import DIFFERS
from lab.config import HostOptions, Machine
from tests.lab.conftest import FrontDoor, on
from tests.real.conftest import Guest

HOST = "real01"
STACK = "lab-real-packages"
OPTIONS = HostOptions(profile="small", distro="trixie", real="packages")
#: Unpacks the headers of the oldest kernel of Debian 12 that its archive has (as packages they bring that kernel), and
#: installs what the lab calls the running kernel's headers, leading to these.
OLDER = """
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Release: trixie' | head -n 1)
echo "deb $mirror bookworm main" >/etc/apt/sources.list.d/older.list
apt-get update -q
kernel=$(apt-cache pkgnames linux-headers-6.1.0- | grep -E -- '-[0-9]+-common$' | sort -V | head -n 1)
kernel=${kernel#linux-headers-}
kernel=${kernel%-common}
mkdir /root/older
cd /root/older
apt-get -o APT::Sandbox::User=root download -q "linux-headers-$kernel-amd64" "linux-headers-$kernel-common" \
    linux-kbuild-6.1 "linux-image-$kernel-amd64"
modules=/root/headers/lib/modules/$(uname -r)
mkdir -p /root/headers/DEBIAN "$modules/kernel"
# one module of its own, or DKMS takes the kernel for one that is not installed
dpkg-deb --fsys-tarfile linux-image-*.deb | tar -x -C "$modules/kernel" --wildcards '*/net/dummy.ko'
rm linux-image-*.deb
for package in *.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x -C / ./usr; done
rm /etc/apt/sources.list.d/older.list
apt-get update -q
apt-get install -y -q gcc-12
touch "$modules/modules.builtin" "$modules/modules.order" "$modules/modules.builtin.modinfo"
ln -s "/usr/src/linux-headers-$kernel-amd64" "$modules/build"
ln -s "/usr/src/linux-headers-$kernel-common" "$modules/source"
printf '%s\\n' "Package: linux-headers-$(uname -r)" "Version: 2.0" "Architecture: all" \
    "Maintainer: lab <lab@localhost>" "Description: stand-in that leads to $kernel" >/root/headers/DEBIAN/control
dpkg-deb --build /root/headers /root/headers.deb
dpkg -i /root/headers.deb
depmod
"""
#: The daemon of the package finds no card behind the made-up one, and ends.
DAEMON = """
unit=/etc/systemd/system/nvidia-persistenced.service.d
mkdir -p "$unit"
printf '%s\\n' '[Service]' Type=oneshot RemainAfterExit=yes ExecStart= ExecStart=/bin/true >"$unit/lab.conf"
"""
#: The checks that want an answer of a card.
ASKS_THE_KERNEL = {
    "test_cuda_starts",
    "test_every_card_has_joined_the_fabric",
    "test_it_lists_every_card",
    "test_nvidia_smi_lists_every_card",
    "test_one_version_everywhere",
    "test_persistence_mode_is_on",
}
#: What the set and its wheels have on the disk that the tests look at.
LIBRARY, WHEEL = "/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.550.163.01", "/opt/pytorch-2.10/lib/python3.13"


@pytest.fixture(scope="module")
def host(guest: Guest) -> tuple[Machine, FrontDoor]:
    """The host with its compiler, and the headers of the kernel that the module builds for."""
    machine, door = guest(HOST, STACK, OPTIONS)
    on(machine, OLDER + DAEMON)
    return machine, door


def as_desired(door: FrontDoor) -> None:
    """Provision, and plan: nothing differs afterwards."""
    done = door("provision", "--hosts", HOST)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    planned = door("plan", "--hosts", HOST)
    assert planned.returncode == 0, planned.stdout


def test_a_bare_host_gets_debians_driver_and_pytorch(host: tuple[Machine, FrontDoor]) -> None:
    machine, door = host
    as_desired(door)
    assert "550.163.01" in on(machine, "dkms status nvidia-current-open")
    assert on(machine, "modinfo -F license nvidia-current-open").strip() == "Dual MIT/GPL"
    assert on(machine, "modinfo -F vermagic nvidia-current-open").startswith("6.1.")
    lines = on(machine, "grep '^install' /etc/modprobe.d/nvidia.conf")
    assert "nvidia-current-open" in lines  # Debian's own, which load the module under its name on the disk
    program = "import torch; print(torch.__version__, (torch.ones(3) @ torch.ones(3)).item())"
    assert on(machine, f'/opt/pytorch-2.10/bin/python -c "{program}"').split() == ["2.10.0+cu128", "3.0"]


def test_verify_fails_in_what_asks_the_kernel_for_a_card_alone(host: tuple[Machine, FrontDoor]) -> None:
    _, door = host
    [verified] = door.json("verify", "--hosts", HOST, status=1)["hosts"]
    failed = {check["check"] for check in verified["checks"] if check["checked"] and not check["passed"]}
    assert failed == ASKS_THE_KERNEL


def test_an_audit_reads_what_was_installed(host: tuple[Machine, FrontDoor]) -> None:
    _, door = host
    done = door("audit", "--hosts", HOST)
    told = {tuple(line.split()[1:-1]) for line in done.stdout.splitlines() if line.endswith("=")}
    assert {("libcuda", "550.163.01"), ("dkms", "550.163.01"), ("torch", "2.10.0")} <= told, done.stdout


def test_what_is_damaged_is_planned_and_brought_again(host: tuple[Machine, FrontDoor]) -> None:
    machine, door = host
    on(
        machine,
        f"rm {LIBRARY} {WHEEL}/site-packages/torch/__init__.py; dkms remove nvidia-current-open/550.163.01 --all",
    )
    planned = door("plan", "--hosts", HOST)
    assert planned.returncode == DIFFERS, planned.stdout
    assert all(name in planned.stdout for name in ("driver", "pytorch")), planned.stdout
    as_desired(door)
    on(machine, f"test -e {LIBRARY} && /opt/pytorch-2.10/bin/python -c 'import torch'")
    assert "installed" in on(machine, "dkms status nvidia-current-open/550.163.01")


def test_removed_nothing_of_it_is_left(host: tuple[Machine, FrontDoor]) -> None:
    machine, door = host
    done = door("remove", "--hosts", HOST, "--roles", "pytorch,driver")
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    left = on(
        machine,
        "dpkg-query -W -f '${db:Status-Abbrev} ${Package}\\n' '*nvidia*' 'libcuda1' 2>/dev/null | grep ^ii || :",
    )
    assert not left, left
    on(machine, "! test -e /opt/pytorch-2.10 && ! test -e /etc/apt/preferences.d/hostwright-no-other-driver")
