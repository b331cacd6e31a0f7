"""States of dead hosts: how a test creates each state, and what a rebuild must do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lab import fleet, halfway
from lab.config import HostOptions
from lab.machine import power_off
from tests.lab.audit.plants import PLANTS
from tests.lab.conftest import on
from tests.lab.rebuild.bench import Bench, Told

Break = Callable[[Bench, str], object]

CHECKS = ("diagnose", "verify")
REPAIR = ("diagnose", "provision", "verify")
#: phases of a rebuild that first removes Hostwright's former files
RELAYER = ("diagnose", "remove", "provision", "verify")
POWER = ("diagnose", "power", "reboot", "verify")


@dataclass(frozen=True)
class State:
    """One kind of dead host. ``way`` and ``phases`` must be in the record of its rebuild, in order."""

    name: str
    host: str
    fail: Break
    way: str
    phases: tuple[str, ...]
    options: HostOptions | None = None


def shell(script: str) -> Break:
    """Return a breakage by commands of root on the host."""
    return lambda bench, host: on(bench.machine(host), script)


def planted(name: str) -> Break:
    """Return the breakage of this name from the audit's tests."""
    return shell({one.name: one.script for one in PLANTS}[name])


def wipe(bench: Bench, host: str) -> None:
    """Reinstall a host without Hostwright: it gets another key, and known_hosts keeps the old one."""
    before = bench.lab.known_hosts.read_bytes()
    fleet.reset(bench.lab, [host])
    bench.lab.known_hosts.write_bytes(before)


#: Stops sshd with SIGSTOP, as on a host that swaps heavily.
HUNG = "pkill -STOP -x sshd"

#: Leaves files of another driver version after an interrupted removal: no programs, half of the libraries.
HALF_REMOVED = """
rm /usr/bin/nvidia-smi /usr/bin/nvidia-modprobe /usr/bin/nvidia-persistenced
cd /usr/lib/x86_64-linux-gnu; rm libnvidia-ml.so.1; ln -sfn libcuda.so.460.32.03 libcuda.so.1
rm -r "/var/lib/dkms/nvidia/470.182.03/$(uname -r)"
"""

#: Installs Debian's packages of another version after the driver's uninstaller, as their instructions require.
DEBIANS = """
rm /etc/apt/preferences.d/hostwright-no-other-driver
nvidia-uninstall --silent
apt-get -q update
DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends nvidia-tesla-470-smi \
libnvidia-tesla-470-cuda1 nvidia-tesla-470-alternative
"""

#: The same without the uninstaller: the first package fails because of the driver, and apt stays blocked.
DEBIANS_HALF = """
rm /etc/apt/preferences.d/hostwright-no-other-driver
apt-get -q update
! DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends nvidia-tesla-470-smi
dpkg-query -W -f '${Status}' nvidia-installer-cleanup | grep -q half-configured
"""

#: Leaves files of another CUDA release after an interrupted removal: its tree, its link /usr/local/cuda, and its two
#: loader files, one of which precedes Hostwright's and follows the link.
NEWER_CUDA = """
other=/usr/local/cuda-11.4 targets=targets/x86_64-linux/lib
mkdir -p $other/bin $other/$targets; touch $other/bin/nvcc; ln -s $targets $other/lib64
cp -L /usr/local/cuda-11.2/$targets/libcudart.so.11.0 $other/$targets
update-alternatives --install /usr/local/cuda cuda $other 114; update-alternatives --set cuda $other
echo /usr/local/cuda/$targets >/etc/ld.so.conf.d/000_cuda.conf
echo $other/$targets >/etc/ld.so.conf.d/cuda-11-4.conf; ldconfig
"""

#: Fills the disk like files of earlier releases, and leaves something to install.
FULL = """
rm /usr/bin/nvidia-smi
old=/var/cache/hostwright/artifacts/$(printf old | sha256sum | cut -d' ' -f1); mkdir -p "$old"
free=$(df -Pk /var | awk 'NR == 2 { print $4 }'); fallocate -l "$((free - 102400))KiB" "$old/old.run"
"""

#: All or most layers of these hosts are installed again.
WIPED = (State("OS wiped, with a new host key", "wiped", wipe, "trust + repair", REPAIR),)
RELAYERED = (
    State("driver of the distribution", "debdrv", shell(DEBIANS), "relayer", RELAYER),
    State("leftovers of CUDA 11.4", "cuda114", shell(NEWER_CUDA), "relayer", RELAYER),
)

#: These hosts are started, or repaired where they differ.
MENDED = (
    State("powered off", "off", lambda bench, host: power_off(bench.machine(host)), "power on + nothing", POWER),
    State("hung, and its BMC says on", "hung", shell(HUNG), "power cycle + nothing", POWER),
    State("driver half removed", "halfdrv", shell(HALF_REMOVED), "repair", REPAIR),
    State("stuck between two drivers", "debhalf", shell(DEBIANS_HALF), "repair", REPAIR),
    State("venv destroyed", "venv", shell("rm -r /opt/hostwright/venvs/*/lib"), "repair", REPAIR),
    State("Docker broken", "docker", planted("daemon.json broken and Docker restarted"), "repair", REPAIR),
    State("dpkg killed among its files", "dpkg", lambda bench, host: halfway.half_unpack(bench.machine(host)),
          "repair", REPAIR),
    State("/var full of old artifacts", "full", shell(FULL), "repair", RELAYER,
          HostOptions(profile="small", disk_bytes=8 * 2**30)),
)  # fmt: skip


def kinds(states: Iterable[State]) -> dict[str, HostOptions | None]:
    """Return the hosts that the states need, with their options."""
    return {state.host: state.options for state in states}


def break_all(bench: Bench, states: Iterable[State]) -> None:
    """Put each host into its state."""
    by_host = {state.host: state for state in states}
    bench.each(by_host, lambda host: by_host[host].fail(bench, host))


def require_back(bench: Bench, told: Told, state: State) -> None:
    """Fail unless the state's host is restored by the required method and phases."""
    bench.tell(state.name, state.host, told)
    assert told.rebuilds[state.host]["outcome"] == "rebuilt", told.rebuilds[state.host]["sentence"]
    assert told.way(state.host) == state.way, told.rebuilds[state.host]["reasons"]
    assert tuple(told.phases(state.host)) == state.phases
