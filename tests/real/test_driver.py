"""NVIDIA's own R470 on Debian 12: its module on a kernel that is too new, on Debian's, and not loaded.

Each test goes on where the last one ended.
"""

from __future__ import annotations

import subprocess

import pytest

from lab.config import HostOptions, Machine
from lab.machine import exec_in
from lab.vendor.real_driver import VERSION
from tests.lab.conftest import FrontDoor, on
from tests.real.conftest import Guest

HOST = "real01"
OPTIONS = HostOptions(profile="small", distro="bookworm", real="driver")
#: Unpacks the headers of the kernel that Debian's backports have today; as packages they bring the kernel itself.
NEWER = """
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Release: bookworm' | head -n 1)
echo "deb $mirror bookworm-backports main" >/etc/apt/sources.list.d/newer.list
apt-get update -q
headers=$(apt-cache depends linux-headers-amd64/bookworm-backports | sed -n 's/^ *Depends: \\(linux-headers-\\)/\\1/p')
needed=$(apt-cache depends "$headers" | sed -n 's/^ *Depends: \\(linux-\\(headers\\|kbuild\\)-.*\\)/\\1/p')
mkdir /root/newer
cd /root/newer
apt-get -o APT::Sandbox::User=root download -q "$headers" $needed
for package in *.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x -C / ./usr; done
"""
#: Points to the headers of the newest kernel, or of Debian 12's own ($1), as the package of the lab does.
LEAD = """
build=$(ls -d /usr/src/linux-headers-$1-amd64 | sort -V | tail -n 1)
ln -sfn "$build" "/lib/modules/$(uname -r)/build"
ln -sfn "${build%-amd64}-common" "/lib/modules/$(uname -r)/source"
"""


@pytest.fixture(scope="module")
def host(guest: Guest) -> tuple[Machine, FrontDoor]:
    """The host, with everything that a module needs to be compiled, and the headers of a newer kernel."""
    machine, door = guest(HOST, "lab-debian12-real-driver", OPTIONS)
    done = door("provision", "--hosts", HOST, "--roles", "base")
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    on(machine, NEWER)
    return machine, door


def provision(door: FrontDoor) -> str:
    """Provision the driver, which must fail; what was printed."""
    done = door("provision", "--hosts", HOST, "--roles", "base,driver")
    assert done.returncode != 0, done.stdout[-3000:]
    return done.stdout + done.stderr


def problems(door: FrontDoor) -> dict[str, list[str]]:
    """What `invoke doctor` finds: rule → evidence."""
    [host] = door.json("doctor", "--hosts", HOST, "--roles", "base,driver", status=3)["hosts"]
    return {finding["rule"]: finding["evidence"] for finding in host["findings"]}


def show(what: str, text: str) -> str:
    """Show what was printed; returns it."""
    print(f"\n--- {what}\n{text.rstrip()}", flush=True)
    return text


def ask(machine: Machine, script: str) -> subprocess.CompletedProcess[str]:
    return exec_in(machine, ["sh", "-c", script])


def test_on_a_kernel_that_is_too_new_the_compilers_errors_name_the_cause(host: tuple[Machine, FrontDoor]) -> None:
    machine, door = host
    on(machine, f"set -- '[6-9].[1-9]*'; {LEAD}")
    show("headers", on(machine, "readlink /lib/modules/$(uname -r)/build"))
    told = show("provision", provision(door))
    assert "did not compile" in told
    log = on(machine, f"cat /var/lib/dkms/nvidia/{VERSION}/build/make.log")
    show("errors", "\n".join(line for line in log.splitlines() if "error:" in line))
    found = problems(door)
    show("doctor", str(found))
    assert "dkms-build" in found


def test_nvidias_own_module_is_built_and_the_doctor_says_why_it_is_not_loaded(host: tuple[Machine, FrontDoor]) -> None:
    machine, door = host
    on(machine, f"set -- '6.1.*'; {LEAD}")
    told = show("provision", provision(door))
    assert (
        "hostwright: no kernel module can be loaded on this host: root lacks CAP_SYS_MODULE, as in a container" in told
    )
    assert f"nvidia/{VERSION}" in show("dkms", on(machine, "dkms status"))
    assert on(machine, "modinfo -F version nvidia; modinfo -F license nvidia").split() == [VERSION, "NVIDIA"]
    assert on(machine, "modinfo -F vermagic nvidia").startswith("6.1.")
    assert "module-loading-off" in show("doctor", str(problems(door)))


def test_the_real_programs_and_libraries_answer_that_there_is_no_driver(host: tuple[Machine, FrontDoor]) -> None:
    machine, _ = host
    smi = ask(machine, "nvidia-smi")
    assert smi.returncode == 9
    assert "couldn't communicate with the NVIDIA driver" in show("nvidia-smi", smi.stdout + smi.stderr)
    code = "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))"
    assert int(show("cuInit", on(machine, f'python3 -c "{code}"'))) in {100, 999}


def test_verify_says_what_is_missing(host: tuple[Machine, FrontDoor]) -> None:
    _, door = host
    done = door("verify", "--hosts", HOST, "--roles", "driver")
    assert done.returncode != 0
    told = show("verify", done.stdout + done.stderr)
    assert "module in the kernel is absent" in told
    assert "CUDA does not start: error 100" in told
    assert "couldn't communicate with the NVIDIA driver" in told
