"""Failures of the driver are seen on a host that has them, on no other, and each cause is one finding."""

from __future__ import annotations

import string
from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.audit.failures.rule import FailureRule
from hostwright.audit.judging.context import Unread
from hostwright.plan.host import jobs
from hostwright.plan.host.hostfacts import PCI, UNAME
from hostwright.plan.model import Answer, Probe
from hostwright.resources.packages.packages import DPKG
from hostwright.resources.system.kernel import HEADERS
from hostwright.standard.roles.driver import Driver
from hostwright.standard.roles.driver.failures import FAILURES, units
from hostwright.standard.roles.driver.failures import build as driver_build
from hostwright.standard.roles.driver.failures import install as driver_install
from hostwright.standard.roles.driver.failures import load as driver_load
from hostwright.standard.roles.driver.failures import state as driver_state
from hostwright.standard.roles.driver.failures.loader_cache import CONF
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI
from hostwright.standard.roles.driver.states.fabric import FABRIC_MANAGER
from hostwright.standard.roles.driver.states.gpu_use import DISPLAY, SECURE_BOOT
from hostwright.standard.roles.driver.states.nouveau import NOUVEAU
from hostwright.standard.roles.driver.xids.kernellog import KERNEL_LOG
from tests.unit.roles.test_role_driver import BARE, FM, NVSWITCH, OTHER, T4, V, state
from tests.unit.support.auditcontexts import show, shown
from tests.unit.support.driver_contexts import (
    ADDED,
    BOOT,
    COMPILER,
    INIT,
    KERNEL,
    LIB,
    LOADING,
    MISMATCH,
    NO_CARD,
    NO_DEVICES,
    NO_FABRIC,
    NO_MODULE,
    NOW,
    PACKAGES,
    RULES,
    SMI,
    STATE,
    TOO_NEW,
    UNLOADED,
    Differs,
    evidence,
    failed_build,
    findings,
    listed,
    log,
    look_at,
    other,
    tree,
)

STATES = units.UNITS.states
JOURNALS = units.UNITS.journals


def test_a_host_that_is_as_desired_has_no_failure() -> None:
    assert not any(look_at().changes.values())
    for rule in RULES:
        assert evidence(rule.name) == [], rule.name


def test_a_bare_host_is_new_and_has_no_failures() -> None:
    bare: Differs = {
        STATE: BARE,
        DPKG: "bash\t5.1\tii \n",
        HEADERS: Answer(1, ""),
        driver_build.BUILD_TOOLS: "cc\nmake\ndkms\n",
        driver_state.DKMS_TREE: "",
        driver_load.DEVICES: "",
        NVIDIA_SMI: Answer(127, ""),
        STATES: shown(
            fabricmanager=NO_FABRIC, persistenced=show(units.PERSISTENCED, "inactive", "dead", load="not-found")
        ),
    }
    assert findings(bare) == {}


def test_a_host_with_another_driver_that_works_is_drift_and_no_failure() -> None:
    works = {
        STATE: state(module=OTHER, loaded=OTHER, dkms="", source="", record="", **other()),
        driver_state.DKMS_TREE: tree(f"tree {OTHER}", f"built {OTHER} {KERNEL}"),
    }
    assert look_at(works).differs("driver")
    assert {name: lines for name, lines in findings(works).items() if name != "next-kernel-without-driver"} == {}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_nothing_is_said_of_a_host_that_was_not_asked(rule: FailureRule) -> None:
    assert rule.sign is not None
    everything = dict.fromkeys((*rule.sign.probes, STATE, KERNEL_LOG, NVIDIA_SMI))
    with pytest.raises(Unread):
        evidence(rule.name, everything)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_look_without_sudo_never_raises_anything_else(rule: FailureRule) -> None:
    roots = {probe: None for probe in look_at().facts if probe.root}
    with suppress(Unread):
        assert evidence(rule.name, roots) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@given(
    text=st.text(alphabet=string.printable + "\x1b\ufffd²٣\u202e", max_size=300), status=st.sampled_from([0, 1, 124])
)
def test_garbage_never_raises(rule: FailureRule, text: str, status: int) -> None:
    assert rule.sign is not None
    for probes in (rule.sign.probes, (STATE,), (UNAME,), (KERNEL_LOG, driver_state.BOOTED)):
        with suppress(Unread):
            evidence(rule.name, dict.fromkeys(probes, Answer(status, text)))


@pytest.mark.parametrize("name", ["9" * 5000 + ".1", "٣.٤.٥", "", "5.10\x1b[2J"])
def test_a_kernel_that_is_none_is_not_judged(name: str) -> None:
    with pytest.raises(Unread):
        evidence("kernel-unsupported", {UNAME: f"{name} x86_64\n", STATE: NO_MODULE})


def test_device_files_are_missed_where_no_log_of_the_kernel_can_be_read() -> None:
    unread = {KERNEL_LOG: Answer(1, ""), driver_load.DEVICES: "loaded nvidia\nsetuid\n"}
    assert evidence("device-files-missing", unread) == ["no /dev/nvidiactl"]


# --- one cause, one finding


ONE = {
    "a library of another version": (
        {STATE: state(**other())},
        "driver-versions-mixed",
        f"libcuda.so.1 is libcuda.so.{OTHER}, libnvidia-ml.so.1 is libnvidia-ml.so.{OTHER}; module {V}, loaded {V}",
    ),
    "a stub that a file of the loader's configuration puts first": (
        {
            STATE: state(**{"libcuda.so.1": "/x/libcuda.so"})
            + "shadow=/x/libcuda.so.1\t/x/libcuda.so\t\t/etc/y.conf:1\n"
        },
        "driver-library-shadowed",
        "/etc/y.conf:1 names the directory of /x/libcuda.so.1, which takes precedence over the driver's library",
    ),
    "a stub that every program loads first": (
        {CONF: "/etc/ld.so.conf:/opt\n/etc/ld.so.preload:/opt/vgpu.so /x/stubs/libcuda.so\n"},
        "driver-library-shadowed",
        "/etc/ld.so.preload names /x/stubs/libcuda.so",
    ),
    "a stub that nvidia-smi gets": (
        {NVIDIA_SMI: Answer(9, "WARNING:\nlibnvidia-ml.so in GDK package is a stub library that is\nfailed\n")},
        "driver-library-shadowed",
        "nvidia-smi prints: libnvidia-ml.so in GDK package is a stub",
    ),
    "a link that was removed": (
        {STATE: state(**{"libcuda.so.1": ""})},
        "driver-versions-mixed",
        f"libcuda.so.1 is absent, libnvidia-ml.so.1 is libnvidia-ml.so.{V}; module {V}, loaded {V}",
    ),
    "a module of nobody's that modprobe takes": (
        {STATE: state(module=OTHER) + "stray=/lib/modules/x/updates/nvidia.ko\n"},
        "driver-versions-mixed",
        f"libcuda.so.1 is libcuda.so.{V}, libnvidia-ml.so.1 is libnvidia-ml.so.{V}; module {OTHER}"
        f" (/lib/modules/x/updates/nvidia.ko), loaded {V}",
    ),
    "a module of a package that modprobe takes": (
        {STATE: state(module=OTHER) + "packaged=/lib/modules/x/updates/nvidia.ko, of the package backport\n"},
        "module-of-package",
        "/lib/modules/x/updates/nvidia.ko, of the package backport",
    ),
    "installed and not booted": (
        {STATE: state(loaded=OTHER)},
        "version-mismatch",
        f"module {OTHER} is loaded; on the disk are module and libraries of {V}",
    ),
    "a library that was deleted": (
        {STATE: state(**{"libcuda.so.1": "", "lost": f"{LIB}/libcuda.so.{V}"})},
        "driver-files-lost",
        f"{LIB}/libcuda.so.{V}",
    ),
    "the distribution's packages": (
        {DPKG: f"{PACKAGES}libnvidia-compute-470\t{OTHER}-1\tii \n", STATE: state(**other())},
        "other-installer",
        f"libnvidia-compute-470 {OTHER}-1",
    ),
    "an installer that was killed": (
        {STATE: state() + "cut=yes\n"},
        "driver-install-cut",
        "/var/lib/hostwright/driver.installing is there",
    ),
    "nothing built": (
        {STATE: NO_MODULE, **ADDED},
        "module-missing",
        f"no module nvidia for the running kernel {KERNEL}, libraries of {V}",
    ),
    "a module that nobody loaded": (
        {STATE: UNLOADED},
        "module-not-loaded",
        f"module {V} for {KERNEL} is not loaded",
    ),
    "no nvidia-uvm": ({STATE: state(uvm="")}, "uvm-not-loaded", f"nvidia {V} is loaded, nvidia-uvm is not"),
    "no headers": (
        {STATE: NO_MODULE, **ADDED, HEADERS: Answer(1, "")},
        "no-headers",
        f"/lib/modules/{KERNEL}/build/Makefile is not there",
    ),
    "no compiler": (
        {STATE: NO_MODULE, **ADDED, driver_build.BUILD_TOOLS: "cc\ndkms\n"},
        "no-compiler",
        "not there: cc, dkms",
    ),
    "a compiler's error": (
        failed_build("nv.c:1: error: too few arguments"),
        "dkms-build",
        "nv.c:1: error: too few arguments",
    ),
    "an option that the compiler does not know": (
        failed_build("gcc: error: unrecognized command-line option '-ftrivial-auto-var-init=zero'"),
        "compiler-too-old",
        "gcc: error: unrecognized command-line option '-ftrivial-auto-var-init=zero'",
    ),
    "a symbol that became GPL-only": (
        failed_build("ERROR: modpost: GPL-incompatible module nvidia.ko uses GPL-only symbol 'rcu_read_lock'"),
        "gpl-only-symbol",
        "ERROR: modpost: GPL-incompatible module nvidia.ko uses GPL-only symbol 'rcu_read_lock'",
    ),
    "a disk that was full then": (
        failed_build("cc: fatal error: No space left on device"),
        "module-missing",
        f"no module nvidia for the running kernel {KERNEL}, libraries of {V}",
    ),
    "a build for another kernel": (
        failed_build("nv.c:1: error: x", kernel="6.1.0-1-amd64"),
        "module-missing",
        f"no module nvidia for the running kernel {KERNEL}, libraries of {V}",
    ),
    "nouveau": (
        {NOUVEAU: "0000:3b:00.0 nouveau\n", STATE: UNLOADED},
        "nouveau-in-use",
        "nouveau drives 0000:3b:00.0",
    ),
    "nova on a bare host": (
        {NOUVEAU: "0000:3b:00.0 nova_core\n", STATE: BARE},
        "nouveau-in-use",
        "nova_core drives 0000:3b:00.0",
    ),
    "Secure Boot": (
        {SECURE_BOOT: "on\n", STATE: UNLOADED},
        "module-not-signed",
        "Secure Boot is on, and no key with which DKMS signs modules is enrolled",
    ),
    "a key that is not the module's": (
        {
            SECURE_BOOT: "enrolled\n",
            STATE: UNLOADED,
            KERNEL_LOG: log("Loading of module with unavailable key is rejected"),
        },
        "module-not-signed",
        "Loading of module with unavailable key is rejected",
    ),
    "no card that starts": ({NVIDIA_SMI: NO_DEVICES}, "no-device", "nvidia-smi: No devices were found"),
    "a module that leaves again": (
        {STATE: UNLOADED, KERNEL_LOG: log(LOADING, NO_CARD)},
        "no-device",
        NO_CARD,
    ),
    "a card that does not start": ({NVIDIA_SMI: NO_DEVICES, KERNEL_LOG: log(LOADING, INIT)}, "gpu-init-failed", INIT),
    "no device files": (
        {driver_load.DEVICES: "loaded nvidia\nsetuid\n"},
        "device-files-missing",
        "no /dev/nvidiactl",
    ),
    "no device file of a card": (
        {driver_load.DEVICES: f"loaded nvidia\ncard 0\n{listed('nvidiactl', 195, 255)}"},
        "device-files-missing",
        "no /dev/nvidia0",
    ),
    "half of nvidia-uvm's": (
        {
            driver_load.DEVICES: "loaded nvidia\nloaded nvidia_uvm\nsetuid\n"
            + listed("nvidiactl", 195, 255)
            + listed("nvidia-uvm", 509, 0)
        },
        "device-files-missing",
        "no /dev/nvidia-uvm-tools",
    ),
    "a module that DKMS does not know": (
        {STATE: state(dkms=""), driver_state.DKMS_TREE: ""},
        "dkms-not-registered",
        f"module {V} for {KERNEL}, dkms: not in its tree",
    ),
    "a module that DKMS did not build": (
        {STATE: state(dkms=""), **ADDED},
        "dkms-not-registered",
        f"module {V} for {KERNEL}, dkms: added, not built",
    ),
    "a second driver in DKMS's tree": (
        {driver_state.DKMS_TREE: tree(f"tree {V}", f"built {V} {KERNEL}", f"tree {OTHER}")},
        "dkms-other-driver",
        f"/var/lib/dkms/nvidia/{OTHER}",
    ),
    "a container with libraries of its own": (
        {KERNEL_LOG: log(LOADING, MISMATCH)},
        "foreign-driver-library",
        MISMATCH,
    ),
    "no persistence daemon": (
        {STATES: shown(fabricmanager=NO_FABRIC, persistenced=show(units.PERSISTENCED, "inactive", "dead"))},
        "persistenced-stopped",
        "nvidia-persistenced.service is inactive (dead)",
    ),
    "the mark of a distribution's driver": (
        {driver_install.MARKED: ""},
        "alternate-install-left",
        "/usr/lib/nvidia/alternate-install-present is there",
    ),
    "a kernel that runs with it all the same": (TOO_NEW, "kernel-untested", None),
    "Fabric Manager where nothing is": (
        {STATES: shown(), PCI: T4},
        "fabric-nothing-to-do",
        "nvidia-fabricmanager.service is active (running)",
    ),
    "no Fabric Manager": (
        {PCI: T4 + NVSWITCH},
        "fabric-not-ready",
        "nvidia-fabricmanager.service: not-found",
    ),
    "a Fabric Manager that stands": (
        {
            PCI: T4 + NVSWITCH,
            DPKG: PACKAGES + FM,
            STATES: shown(fabricmanager=show(FABRIC_MANAGER, "inactive", "dead")),
        },
        "fabric-not-ready",
        "nvidia-fabricmanager.service is inactive (dead)",
    ),
    "a Fabric Manager of another version": (
        {
            PCI: T4 + NVSWITCH,
            DPKG: PACKAGES + FM.replace(V, "470.199.02"),
            STATES: shown(fabricmanager=NO_FABRIC),
        },
        "fabric-manager-version",
        f"nvidia-fabricmanager-470 470.199.02-1, driver {V}",
    ),
}


@pytest.mark.parametrize("case", ONE)
def test_one_cause_is_one_finding(case: str) -> None:
    differs, name, line = ONE[case]
    found = findings(differs)
    assert list(found) == [name]
    if line is not None:
        assert found[name][0] == line


# --- what an operator does about it


def test_a_newer_compiler_of_the_kernels_stands_beside_a_build_that_failed() -> None:
    ubuntu = (
        "Linux version 6.2.0-39-generic (buildd@lcy02) (x86_64-linux-gnu-gcc-12 (Ubuntu 12.3.0-1ubuntu1~22.04) 12.3.0,"
        " GNU ld (GNU Binutils for Ubuntu) 2.38) #40\n11.4.0\n"
    )
    failed = failed_build("nv.c:1: error: x")
    assert findings({**failed, driver_build.COMPILERS: ubuntu})["dkms-build"] == [
        "nv.c:1: error: x",
        "the kernel was built by gcc 12.3.0, and cc is gcc 11.4.0",
    ]
    focal = "Linux version 5.4.0-1 (b@l) (gcc version 9.4.0 (Ubuntu 9.4.0-1ubuntu1~20.04.2)) #1\n"
    for compilers in (COMPILER + "12.2.0\n", focal + "9.4.0\n", COMPILER + "clang\n", "", "Linux\n1\n"):
        assert findings({**failed, driver_build.COMPILERS: compilers})["dkms-build"] == ["nv.c:1: error: x"]
    assert len(findings({**failed, driver_build.COMPILERS: focal + "8.4.0\n"})["dkms-build"]) == 2


def test_display_is_reported_only_if_it_blocks_the_installer() -> None:
    due: Differs = {DISPLAY: "gdm.service\nX server 900\n", STATE: state(source="")}
    assert evidence("x-server", due) == ["gdm.service", "X server 900"]
    assert evidence("x-server", {**due, STATE: state()}) == []
    assert evidence("x-server", due, variables=Driver(force=True)) == []
    assert evidence("x-server", {STATE: state(source="")}) == []


def test_a_module_of_others_that_uses_the_driver_is_named_if_it_blocks_the_installer() -> None:
    due: Differs = {STATE: f"{state(source='')}holder=gdrdrv\n"}
    assert evidence("module-held", due) == ["/sys/module/nvidia/holders: gdrdrv"]
    assert evidence("module-held", {STATE: f"{state()}holder=gdrdrv\n"}) == []


def test_an_installer_that_runs_now_was_not_cut() -> None:
    now = {STATE: state() + "cut=yes\n", jobs.RUNNING: "r1-driver {}\n"}
    assert evidence("driver-install-cut", now) == []


def test_stopped_daemon_is_the_failure_whatever_the_cards_report() -> None:
    stopped = {STATES: shown(persistenced=show(units.PERSISTENCED, "inactive", "dead"))}
    assert evidence("persistenced-stopped", stopped)
    assert evidence("persistenced-stopped", {**stopped, NVIDIA_SMI: SMI.replace("Enabled", "Disabled")})
    failed = {STATES: shown(persistenced=show(units.PERSISTENCED, "failed", "failed", result="exit-code"))}
    assert evidence("persistenced-stopped", failed) == []


def test_what_fabric_manager_said_is_told_where_nothing_is() -> None:
    said = "WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]"
    differs: dict[Probe, str | Answer | None] = {
        STATES: shown(fabricmanager=show(FABRIC_MANAGER, "failed", "failed", result="exit-code")),
        JOURNALS: f"{FABRIC_MANAGER}: {said}\n",
    }
    assert evidence("fabric-nothing-to-do", differs)[1] == said
    assert evidence("fabric-nothing-to-do", {STATES: shown(fabricmanager=NO_FABRIC)}) == []


def test_a_host_with_nvswitches_and_fabric_manager_has_no_failure() -> None:
    hgx = {PCI: T4 + NVSWITCH, DPKG: PACKAGES + FM, STATES: shown()}
    assert findings(hgx) == {}
    assert evidence("fabric-nothing-to-do", hgx) == []


def test_the_boot_time_is_parsed_or_unread() -> None:
    assert timedelta(0) < NOW - BOOT
    with pytest.raises(Unread):
        list(driver_state.since_boot(look_at({driver_state.BOOTED: "soon\n"})))


def test_an_error_of_nvidia_smi_that_nobody_knows_is_a_finding_with_its_last_words() -> None:
    (rule,) = (rule for rule in FAILURES if rule.name == "nvidia-smi-failed")
    assert rule.sign is not None
    failed: Differs = {NVIDIA_SMI: Answer(3, "first\nInsufficient something\n")}
    assert list(rule.sign.seen(look_at(failed))) == ["nvidia-smi ended with status 3: Insufficient something"]
    known = {"the driver is the cause": {**failed, STATE: UNLOADED}, "it is not there": {NVIDIA_SMI: Answer(127, "")}}
    known["the log knows"] = {NVIDIA_SMI: NO_DEVICES, KERNEL_LOG: log(LOADING, INIT)}
    for why, differs in known.items():
        assert list(rule.sign.seen(look_at(differs))) == [], why
