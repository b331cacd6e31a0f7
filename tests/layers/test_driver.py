"""The driver as its users meet it: one version everywhere, every card there, CUDA starts, no other driver beside it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from testinfra.backend.base import CommandResult
from testinfra.host import Host

from hostwright.audit.hardware.gpu import Gpu
from hostwright.audit.hardware.known import NOTHING_KNOWN
from hostwright.audit.history import History
from hostwright.common.places import state_root
from hostwright.plan.facts.expected import read_expected_gpus
from hostwright.plan.host.hostfacts import PCI
from hostwright.plan.model import Answer, Facts
from hostwright.plan.targets import TargetHost
from hostwright.resources.system.bootloader import BOOT_LOADER
from hostwright.stack.stack import Stack
from hostwright.standard.roles.driver.apt_answers import DIST_UPGRADE, POLICY, UPGRADE, apt_answers
from hostwright.standard.roles.driver.failures.kernel import (
    KERNELS,
    UDEV,
    VFIO,
    booted_next,
    for_vfio,
    in_initramfs,
    kernels_in,
    lacks_driver,
    other_kernel,
    overridden,
    taking_cards,
)
from hostwright.standard.roles.driver.failures.state import DKMS_TREE, read_tree
from hostwright.standard.roles.driver.nvsmi.fields import bus_address
from hostwright.standard.roles.driver.nvsmi.report import read_report
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.driver.states.fabric import CHANNEL, FABRIC, MANAGED, Fabric, fabric_of
from hostwright.standard.roles.driver.states.gpu_use import gpu_ids
from hostwright.standard.roles.driver.states.modprobe import MODPROBE, blacklisted_by, forbidding
from hostwright.verify.backend import KILLED_AS_TIMED_OUT, TIMED_OUT

Run = Callable[..., CommandResult]

#: Opens the library that programs open, as they do, and counts the cards through it: ``<error> <driver> <cards>
#: <library>``.
COUNT_CARDS = (
    """\
set -e
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cat >"$work/count.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (!cuda) { puts(dlerror()); return 1; }
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
    int (*version)(int *) = (int (*)(int *))dlsym(cuda, "cuDriverGetVersion");
    int (*count)(int *) = (int (*)(int *))dlsym(cuda, "cuDeviceGetCount");
    Dl_info library = {0};
    dladdr((void *)init, &library);
    int driver = 0, cards = 0, error = init(0);
    if (!error) error = version(&driver);
    if (!error) error = count(&cards);
    printf("%d %d %d %s\\n", error, driver, cards, library.dli_fname);
    return 0;
}
END
cc -o "$work/count" "$work/count.c" -ldl
timeout -k 5 60 "$work/count" """
    + KILLED_AS_TIMED_OUT
)


#: Names of the module's file; Debian's have names of their own on the disk.
MODULES = "nvidia nvidia-current-open nvidia-current"


def cards_on_the_bus(root_once: Run) -> int:
    """How many NVIDIA display (0300) and 3D (0302) controllers the PCI bus shows."""
    lines = root_once("lspci -n -d 10de:").stdout.splitlines()
    return sum(1 for line in lines if line.split()[1].rstrip(":") in {"0300", "0302"})


def test_one_version_everywhere(host: Host, root_run: Run, bounded_run: Run, stack: Stack) -> None:
    """Module on disk, module in the kernel, library and nvidia-smi are all of the stack's version."""
    loaded = host.run("sed -n 's/^NVRM version:.*Module  *\\([0-9.]*\\).*/\\1/p' /proc/driver/nvidia/version")
    library = host.run(
        "/sbin/ldconfig -p | sed -n 's/.*libcuda.so.1 (libc6,x86-64.*=> //p' | head -n 1 | xargs readlink -e"
    )
    versions = {
        "module on disk": root_run(
            f"for name in {MODULES}; do modinfo -F version $name 2>/dev/null && break; done"
        ).stdout.strip(),
        "module in the kernel": loaded.stdout.strip(),
        "libcuda.so.1": library.stdout.strip().rpartition("libcuda.so.")[2],
        "nvidia-smi": bounded_run("nvidia-smi --query-gpu=driver_version --format=csv,noheader").stdout.split("\n")[0],
    }
    wrong = [
        f"{what} is {version or 'absent'}"
        for what, version in versions.items()
        if version != stack.section(DriverSection).version
    ]
    assert not wrong, f"not {stack.section(DriverSection).version}: {', '.join(wrong)}"


def test_nvidia_smi_lists_every_card(root_once: Run, bounded_run: Run) -> None:
    """nvidia-smi, run by the login user, lists as many cards as the PCI bus shows."""
    listed = bounded_run("nvidia-smi -L")
    assert listed.rc == 0, f"nvidia-smi says: {(listed.stdout + listed.stderr).strip()}"
    cards = sum(1 for line in listed.stdout.splitlines() if "UUID: GPU-" in line)
    on_bus = cards_on_the_bus(root_once)
    assert on_bus > 0, "the PCI bus shows no NVIDIA card"
    assert cards == on_bus, f"nvidia-smi lists {cards} of {on_bus} cards"


def test_every_card_of_the_inventory_is_there(
    root_once: Run, bounded_run: Run, target: TargetHost, inventory: str
) -> None:
    """The PCI bus shows as many cards as the inventory says that the host has, where it says so."""
    declared, on_bus = read_expected_gpus(target.host), cards_on_the_bus(root_once)
    known = History(state_root()).hardware(inventory).get(target.name, NOTHING_KNOWN)
    rows = bounded_run("nvidia-smi --query-gpu=pci.bus_id,uuid --format=csv,noheader").stdout.splitlines()
    present = [row.partition(",")[::2] for row in rows]
    gone = known.missing(Gpu(0, bus_address(bus.strip()), uuid.strip()) for bus, uuid in present)
    names = "".join(f"; gone since an earlier audit: card at {card.name}" for card in gone)
    assert declared is None or on_bus >= declared, f"{on_bus} of {declared} GPUs (hostwright_gpus){names}"


def test_cuda_starts(run_program: Run, root_once: Run) -> None:
    """A program of the login user opens libcuda.so.1, starts CUDA and counts every card."""
    answer = run_program(COUNT_CARDS)
    said = (answer.stdout + answer.stderr).strip()
    assert answer.rc != TIMED_OUT, "CUDA does not start within 60 s: a card or its driver hangs"
    assert answer.rc == 0, f"the program is not built, or cannot open libcuda.so.1: {said}"
    *numbers, library = answer.stdout.splitlines()[-1].split(" ", 3)
    error, driver, cards = map(int, numbers)
    assert error == 0, f"CUDA does not start: error {error} of {library}"
    assert driver >= 11020, f"the driver supports CUDA {driver}, older than 11.2"
    on_bus = cards_on_the_bus(root_once)
    assert cards == on_bus, f"CUDA sees {cards} of {on_bus} cards"


def test_the_driver_has_every_card(root_once: Run) -> None:
    """Every card is driven by the nvidia module."""
    lines = root_once("lspci -k -d 10de:").stdout.splitlines()
    users = [line.rpartition(": ")[2] for line in lines if "Kernel driver in use" in line]
    assert users.count("nvidia") >= cards_on_the_bus(root_once), f"drivers in use: {', '.join(users) or 'none'}"


def test_device_files_are_there(host: Host) -> None:
    """The device files of the GPUs and of unified memory can be opened by every user."""
    for path in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"):
        status = host.run("[ -e %s ] || exit 2; [ -r %s ] && [ -w %s ]", path, path, path).rc
        assert status != 2, f"{path} is missing"
        assert status == 0, f"{path} is there, and not for every user"


def test_dkms_builds_it_for_the_next_kernel(root_run: Run, root_once: Run, stack: Stack) -> None:
    """DKMS has the driver installed for the running kernel, and its sources for the next one."""
    wanted = stack.section(DriverSection)
    if wanted.packages and not any(name.endswith("-dkms") or "-dkms-" in name for name in wanted.packages):
        return  # its module comes compiled, with each kernel's package
    names = MODULES if wanted.packages else "nvidia"
    kernel = root_once("uname -r").stdout.strip()
    ours = re.compile(rf"({'|'.join(names.split())})(, |/){re.escape(wanted.version)}(, {re.escape(kernel)},|:)")
    status = "\n".join(line for line in root_once("dkms status").stdout.splitlines() if ours.match(line))
    assert "installed" in status, f"dkms says: {status or 'nothing'}"
    sources = " ".join(f"/usr/src/{name}-{wanted.version}/dkms.conf" for name in names.split())
    assert root_run(f"cat {sources} 2>/dev/null").stdout.strip(), "its sources are gone"


def test_it_comes_back_after_a_boot(host: Host) -> None:
    """The module and that for unified memory are loaded at boot, also on a host without a display."""
    named = host.run("cat /etc/modules-load.d/*.conf").stdout.split("\n")
    missing = {"nvidia", "nvidia-uvm"} - set(named)
    assert not missing, f"/etc/modules-load.d does not name {', '.join(sorted(missing))}"
    assert host.service("nvidia-persistenced").is_enabled, "nvidia-persistenced is not enabled"


def test_it_is_there_after_the_next_boot(root_run: Run, root_once: Run, stack: Stack) -> None:
    """The kernel that boots next has the module, and neither modprobe.d nor its command line keeps it away."""
    wanted = stack.section(DriverSection)
    kernels, boot_loader, tree, modprobe = (
        root_run(probe.script).stdout for probe in (KERNELS, BOOT_LOADER, DKMS_TREE, MODPROBE)
    )
    lines = [str(line) for line in forbidding(modprobe, renamed=wanted.renamed)]
    assert not lines, f"after a reboot the module is not loaded: {'; '.join(lines)}"
    held = in_initramfs(kernels)
    assert not held, f"a reboot loads another module: {'; '.join(held)}"
    found = kernels_in(kernels)
    boot = booted_next(found, boot_loader)
    words = blacklisted_by(boot.words)
    assert not words, f"after a reboot the module is not loaded: {boot.where} has {' '.join(words)}"
    cards = gpu_ids(Facts({PCI: Answer(0, root_once(PCI.script).stdout)}))
    taken = for_vfio(root_run(VFIO.script).stdout, cards, boot)
    assert not taken, f"after a reboot vfio-pci has the card: {'; '.join(taken)}"
    taking = root_run(UDEV.script).stdout
    rules = taking_cards(taking)
    assert not rules, f"after a reboot a udev rule removes the cards: {'; '.join(rules)}"
    given = overridden(taking)
    assert not given, f"after a reboot another driver has a card: {'; '.join(given)}"
    kernel = other_kernel(found, boot, root_once("uname -r").stdout.strip()) if not boot.unknown else None
    lacking = lacks_driver(kernel, {wanted.version}, read_tree(tree), wanted) if kernel else ""
    assert not kernel or not lacking, f"after a reboot into {kernel.version} there are no GPUs: {lacking} ({boot.why})"


def test_persistence_mode_is_on(host: Host, bounded_run: Run) -> None:
    """The persistence daemon runs, and keeps every card awake."""
    assert host.service("nvidia-persistenced").is_running, "nvidia-persistenced does not run"
    modes = bounded_run("nvidia-smi --query-gpu=persistence_mode --format=csv,noheader").stdout.split()
    assert set(modes) == {"Enabled"}, f"persistence mode: {', '.join(modes) or 'nvidia-smi does not say'}"


@pytest.fixture(name="fabric")
def _fabric(root_once: Run) -> Fabric:
    """What joins the cards of the host."""
    return fabric_of(Facts({probe: Answer(0, root_once(probe.script).stdout) for probe in (PCI, FABRIC)}))


def test_fabric_manager_runs_where_it_has_switches(host: Host, stack: Stack, fabric: Fabric) -> None:
    """Fabric Manager of exactly the driver's version runs and is held where it has switches, and only there."""
    managed = fabric in MANAGED
    assert host.service("nvidia-fabricmanager").is_running == managed, f"the cards are joined by {fabric.value}"
    section = stack.section(DriverSection)
    wanted = section.fabric_manager if managed else None
    query = "dpkg-query -W -f='${db:Status-Abbrev} ${Version}' %s 2>/dev/null"
    installed = host.run(query, section.fabric_manager_package).stdout if wanted else ""
    assert installed == (f"hi  {wanted.version}" if wanted else ""), f"dpkg says: {installed}"


def test_every_card_has_joined_the_fabric(bounded_run: Run) -> None:
    """Cards that switches join say of their fabric that it is complete, with success, and are in one clique."""
    answer = bounded_run("nvidia-smi -q -x")
    assert answer.rc == 0, f"nvidia-smi ended with status {answer.rc}"
    gpus = read_report(answer.stdout).gpus
    apart = [f"card {gpu.index}: {gpu.fabric_state}" for gpu in gpus if gpu.fabric is False]
    assert not apart, f"not joined, so that CUDA ends with error 802: {'; '.join(apart)}"
    cliques = {gpu.clique for gpu in gpus if gpu.fabric}
    assert len(cliques) < 2, f"the cards are in {len(cliques)} cliques: {', '.join(sorted(cliques))}"


def test_a_racks_tray_shares_memory_with_the_others(host: Host, stack: Stack, fabric: Fabric) -> None:
    """On a compute tray of a rack, IMEX of the driver's version runs and its first channel is there."""
    section = stack.section(DriverSection)
    if fabric is not Fabric.RACK or section.imex is None:
        assert not host.service("nvidia-imex").is_running or fabric is Fabric.RACK, "nvidia-imex has nothing to do here"
        return
    assert host.service("nvidia-imex").is_running, "nvidia-imex does not run"
    assert host.file(CHANNEL).exists, f"{CHANNEL} is not there"


@pytest.mark.beside
def test_no_other_driver_can_be_installed(root_run: Run, root_once: Run, stack: Stack, target: TargetHost) -> None:
    """apt offers no NVIDIA driver of any repository: only the stack's packages, at the stack's versions."""
    wanted = stack.section(DriverSection).packages
    policy = apt_answers(root_once, target.context)[POLICY]
    assert policy.rc == 0
    offered: dict[str, str] = {}
    name = ""
    for line in policy.stdout.splitlines():
        if not line.startswith(" "):
            name = line.strip().rstrip(":")
        elif "Candidate:" in line and not line.endswith("(none)"):
            offered[name] = line.rpartition(" ")[2]
    others = [f"{name} {version}" for name, version in offered.items() if wanted.get(name) != version]
    assert not others, f"apt would install a driver: {', '.join(others)}"
    pins = root_run("grep -rlE '^Pin-Priority: *-' /etc/apt/preferences.d")
    assert "hostwright" in pins.stdout, "no file in /etc/apt/preferences.d forbids other drivers"


def test_no_other_driver_is_installed(host: Host, stack: Stack) -> None:
    """No package of an NVIDIA driver is installed but the stack's."""
    wanted = stack.section(DriverSection).packages
    table = host.check_output("dpkg-query -W -f='${db:Status-Status} ${Package}\\n'")
    names = [row.split()[1] for row in table.splitlines() if row.startswith("installed ")]
    prefixes = ("nvidia-driver", "nvidia-kernel-", "nvidia-dkms", "libnvidia-compute", "libnvidia-ml", "cuda-drivers")
    packages = [name for name in names if (name.startswith(prefixes) or name == "libcuda1") and name not in wanted]
    assert not packages, f"installed: {', '.join(packages)}"


@pytest.mark.beside
def test_an_upgrade_would_not_move_the_driver(root_run: Run, root_once: Run, stack: Stack, target: TargetHost) -> None:
    """Upgrades of everything, simulated, move no package of the driver, and unattended-upgrades leaves them alone."""
    wanted = stack.section(DriverSection).packages
    if not wanted:
        return  # a driver from the .run has no package that could move, and each answer costs a host a second
    for verb in (UPGRADE, DIST_UPGRADE):
        plan = apt_answers(root_once, target.context)[verb]
        assert plan.rc == 0, plan.stderr.strip()
        moved = [words[1] for line in plan.stdout.splitlines() if (words := line.split())[:1] in (["Inst"], ["Remv"])]
        bad = sorted({*moved}.intersection(wanted))
        assert not bad, f"apt-get {verb} would move {', '.join(bad)}"
    fenced = root_run("apt-config dump Unattended-Upgrade::Package-Blacklist").stdout
    free = [name for name in wanted if f'"{name}$"' not in fenced]
    assert not free, f"unattended-upgrades may move {', '.join(free)}"


def test_open_drivers_do_not_have_a_card(root_run: Run, root_once: Run) -> None:
    """No NVIDIA card is driven by nouveau or its successors, and modprobe would not load them by itself."""
    cards = root_once("lspci -k -d 10de:")
    assert "in use: nouveau" not in cards.stdout, "nouveau drives a card; the host needs a reboot"
    assert "in use: nova" not in cards.stdout, "nova drives a card; the host needs a reboot"
    config = root_run("modprobe --showconfig").stdout.splitlines()
    free = [name for name in ("nouveau", "nova_core", "nova_drm") if f"blacklist {name}" not in config]
    assert not free, f"not blacklisted: {', '.join(free)}"
