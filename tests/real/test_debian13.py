"""Debian 13 with its own R550, whose open module DKMS builds, PyTorch's own wheels, and Debian's own Docker.

The kernels that Debian 13 has today are too new for that module (`inventory/stacks/debian-13-r550.yml`), so it is built
against the headers of Debian 12's. Packages, firmware, compiler, Python, wheels and Docker are the real ones. What
stands in is the kernel's part (a card on the bus, a module that is loaded), the persistence daemon, which asks the
kernel for cards, and NVIDIA's container toolkit, which no public index has. Each test goes on where the last one ended.
"""

from __future__ import annotations

import pytest
import yaml

from hostwright.common.errors import DIFFERS
from lab.config import HostOptions, Machine
from tests.lab.conftest import FrontDoor, on
from tests.lab.test_cdi import DOCKER_IN_THE_LAB
from tests.real.conftest import Guest
from tests.real.test_driver import LEAD, NEWER

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
    "test_a_container_has_the_gpus_of_the_host",
    "test_cuda_starts",
    "test_every_card_has_joined_the_fabric",
    "test_it_lists_every_card",
    "test_nvidia_smi_lists_every_card",
    "test_one_version_everywhere",
    "test_persistence_mode_is_on",
}
#: The same with the other kind of module.
PROPRIETARY = {
    "extends": STACK,
    "description": "Debian 13's R550 with its proprietary module",
    "driver": {
        "module": "proprietary",
        "packages": {
            "nvidia-open-kernel-dkms": None,
            "nvidia-open-kernel-support": None,
            "nvidia-kernel-dkms": "550.163.01-2",
            "nvidia-kernel-support": "550.163.01-2",
        },
    },
}
#: What the set and its wheels have on the disk that the tests look at.
LIBRARY, WHEEL = "/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.550.163.01", "/opt/pytorch-2.10/lib/python3.13"


@pytest.fixture(scope="module")
def host(guest: Guest) -> tuple[Machine, FrontDoor]:
    """The host with its compiler, and the headers of the kernel that the module builds for."""
    machine, door = guest(HOST, STACK, OPTIONS)
    on(machine, OLDER + DAEMON + DOCKER_IN_THE_LAB)
    return machine, door


def as_desired(door: FrontDoor, *more: str) -> None:
    """Provision, and plan: nothing differs afterwards."""
    done = door("provision", "--hosts", HOST, *more)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    planned = door("plan", "--hosts", HOST, *more)
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


def test_docker_is_debians_and_its_toolkit_a_stand_in(host: tuple[Machine, FrontDoor]) -> None:
    machine, _ = host
    assert on(machine, "docker version -f '{{.Server.Version}}'").startswith("26.1.5")
    assert "hostwright-stand-in" in on(machine, "nvidia-ctk --version")
    assert "nvidia" in on(machine, "docker info -f '{{json .Runtimes}}'")


def test_without_an_answer_of_a_card_a_note_stands_for_the_cdi_specification(host: tuple[Machine, FrontDoor]) -> None:
    """The toolkit's unit asks the real nvidia-smi first, and fails there; the layer is whole all the same."""
    machine, door = host
    assert on(machine, "systemctl show -p ActiveState --value nvidia-cdi-refresh.service").strip() == "failed"
    [planned] = door.json("plan", "--hosts", HOST, status=0)["plans"]
    assert not planned["roles"]
    assert any(note.startswith("no GPU: nvidia-smi lists none") for note in planned["notes"]), planned["notes"]


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


def left(machine: Machine) -> str:
    """The packages of a driver that are installed."""
    return on(
        machine,
        "dpkg-query -W -f '${db:Status-Abbrev} ${Package}\\n' '*nvidia*' 'libcuda1' 2>/dev/null | grep ^ii || :",
    )


def kind(machine: Machine, name: str) -> str:
    """The licence of the module of that name on the disk: what tells the two kinds apart."""
    return on(machine, f"modinfo -F license {name} 2>/dev/null || true").strip()


def test_the_proprietary_module_takes_the_place_of_the_open_one_and_back(host: tuple[Machine, FrontDoor]) -> None:
    """Two sets of packages that differ in the module alone; what is loaded stands in, and is loaded anew."""
    machine, door = host
    stacks = door.lab.inventory.parent / "stacks"
    (stacks / "lab-real-proprietary.yml").write_text(yaml.safe_dump(PROPRIETARY))
    other = ("--var", "stack=lab-real-proprietary")
    planned = door("plan", "--hosts", HOST, *other)
    assert planned.returncode == DIFFERS, planned.stdout
    as_desired(door, *other)
    assert (kind(machine, "nvidia-current"), kind(machine, "nvidia-current-open")) == ("NVIDIA", "")
    assert "installed" in on(machine, "dkms status nvidia-current/550.163.01")
    as_desired(door)
    assert (kind(machine, "nvidia-current"), kind(machine, "nvidia-current-open")) == ("", "Dual MIT/GPL")
    assert on(machine, f"test -e {LIBRARY}; echo there").strip() == "there"


def test_removed_nothing_of_it_is_left(host: tuple[Machine, FrontDoor]) -> None:
    machine, door = host
    done = door("remove", "--hosts", HOST, "--roles", "container,pytorch,driver")
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert not left(machine)
    on(machine, "! test -e /opt/pytorch-2.10 && ! test -e /etc/apt/preferences.d/hostwright-no-other-driver")


def test_on_a_kernel_that_is_too_new_the_compilers_errors_name_the_cause(host: tuple[Machine, FrontDoor]) -> None:
    """On the kernel of Debian 13's backports, 7.3; the last test, as packages are left that wait for their module."""
    machine, door = host
    on(machine, NEWER.replace("bookworm", "trixie") + f"set -- '7.*'; {LEAD}")
    done = door("provision", "--hosts", HOST, "--roles", "base,driver")
    assert done.returncode != 0, done.stdout[-3000:]
    assert "did not compile" in done.stdout
    log = on(machine, "cat /var/lib/dkms/nvidia-current-open/550.163.01/build/make.log")
    assert "nv-mm.h:315:25: error: ‘struct vm_area_struct’ has no member named ‘__vm_flags’" in log
    [found] = door.json("doctor", "--hosts", HOST, "--roles", "base,driver", status=3)["hosts"]
    assert "dkms-build" in {finding["rule"] for finding in found["findings"]}
