"""Failures that the driver's installer, its module, a compiler or Fabric Manager report by a message."""

from __future__ import annotations

from hostwright.audit.failures import FailureRule, ForPeople, Hardware, Held, Stuck, Tangled
from hostwright.audit.failures.treatment import FEWER_CARDS
from hostwright.standard.roles.driver.failures import fabric
from hostwright.standard.roles.driver.failures.build import (
    BUILD_FAILED_SIGN,
    MISSING_SIGN,
    NO_COMPILER_SIGN,
    NO_HEADERS_SIGN,
    unbuilt_by_ours,
)
from hostwright.standard.roles.driver.failures.cards.lost import GPU_LOST_SIGN
from hostwright.standard.roles.driver.failures.cards.treatments import CYCLE, GPUD
from hostwright.standard.roles.driver.failures.install import OTHER_INSTALLER_SIGN, VERSION_MISMATCH_SIGN, X_SERVER_SIGN
from hostwright.standard.roles.driver.failures.load import (
    GPU_UNSUPPORTED_SIGN,
    NO_DEVICE_SIGN,
    NOT_SIGNED_SIGN,
    NOUVEAU_SIGN,
)
from hostwright.standard.roles.driver.failures.logs import in_log

MESSAGES = (
    FailureRule(
        "nouveau-in-use",
        r"Nouveau kernel driver is currently in use",
        "the nouveau driver has the GPU",
        "Blacklist nouveau, rebuild the initramfs and reboot (the driver role does all three), then provision again",
        "nvidia-installer misc.c",
        sign=NOUVEAU_SIGN,
    ),
    FailureRule(
        "x-server",
        r"You appear to be running an X server",
        "an X server is running",
        "Stop the display manager (systemctl isolate multi-user.target) and provision again",
        "nvidia-installer misc.c",
        sign=X_SERVER_SIGN,
        treatment=ForPeople(),
    ),
    FailureRule(
        "module-in-use",
        r"kernel module '[^']*' appears to already be loaded|Module nvidia\w* is in use"
        r"|hostwright: the kernel module nvidia\w* is in use",
        "the loaded NVIDIA module is in use and cannot be unloaded",
        "End what holds /dev/nvidia* (fuser -v /dev/nvidia*), or reboot the host, then provision again",
        "nvidia-installer kernel.c",
        sign=in_log("module-in-use"),
        treatment=Held("the loaded driver is in use and cannot be unloaded"),
    ),
    FailureRule(
        "no-headers",
        r"Unable to find the kernel source tree|The kernel header file .* does not exist"
        r"|kernel headers for kernel \S+ cannot be found|Unable to locate package linux-headers-"
        r"|hostwright: no headers of the running kernel",
        "the headers of the running kernel are missing, often because the kernel was upgraded and not booted",
        "Install linux-headers-$(uname -r); where the archive no longer has it, install a new kernel with its headers"
        " and reboot",
        "nvidia-installer kernel.c",
        sign=NO_HEADERS_SIGN,
    ),
    FailureRule(
        "no-compiler",
        r"Unable to find the development tool|You do not appear to have libc header files"
        r"|hostwright: no C compiler",
        "a compiler, make or the C library's headers are missing",
        "Install build-essential and dkms (the base role does), then provision again",
        "nvidia-installer misc.c",
        sign=NO_COMPILER_SIGN,
    ),
    FailureRule(
        "compiler-too-old",
        r"unrecognized command[- ]line option .?-ftrivial-auto-var-init",
        "the kernel was built with a newer gcc than the host's default compiler",
        "Install the gcc that /proc/version names (gcc-12 for Ubuntu 22.04's 6.x kernels) and make it cc",
        "pop-os/pop#3117, GoogleCloudPlatform/compute-gpu-installation#15",
        sign=in_log("compiler-too-old", when=unbuilt_by_ours),
        treatment=ForPeople(),
    ),
    FailureRule(
        "compiler-mismatch",
        r"Compiler version check failed|Failed CC version check",
        "the compiler is not the one that the kernel was built with",
        "Pass --no-cc-version-check (the driver role does); when the build then fails, install the kernel's own gcc",
        "GoogleCloudPlatform/compute-gpu-installation#15",
        sign=in_log("compiler-mismatch", when=unbuilt_by_ours),
        treatment=Stuck("the driver's last build failed"),
    ),
    FailureRule(
        "gpl-only-symbol",
        r"GPL-incompatible module nvidia\S* uses GPL-only symbol",
        "a fix in this kernel's stable series made GPL-only a function that the module calls",
        "Boot an older kernel of the series, or name a newer R470 release in the stack",
        "void-linux/void-packages#48504",
        sign=in_log("gpl-only-symbol", when=unbuilt_by_ours),
        treatment=ForPeople(),
    ),
    FailureRule(
        "module-not-signed",
        r"Required key not available|Key was rejected by service|not signed by a key that is trusted",
        "Secure Boot is on and the module is not signed by a key that the firmware trusts",
        "Switch Secure Boot off in the firmware, or enrol DKMS's key with mokutil --import and confirm it at the"
        " console during the next boot",
        "nvidia-installer kernel.c",
        sign=NOT_SIGNED_SIGN,
        treatment=ForPeople(),
    ),
    FailureRule(
        "stale-dkms",
        r"DKMS tree already contains",
        "an earlier run left this driver version in the DKMS tree",
        "Run dkms remove -m nvidia -v VERSION --all (the driver role does), then provision again",
        "negativo17/nvidia-driver#56",
        sign=in_log("stale-dkms", provision=True),
    ),
    FailureRule(
        "other-installer",
        r"installed previously using a different installer",
        "the distribution's NVIDIA packages are, or were, on the host",
        "Purge them and remove /usr/lib/nvidia/alternate-install-present (the driver role does both)",
        "nvidia-installer misc.c",
        sign=OTHER_INSTALLER_SIGN,
        treatment=Tangled("the distribution's driver packages are, or were, there"),
    ),
    FailureRule(
        "flag-unknown",
        r"[Ii]nvalid commandline, please run",
        "the installer was given an option that its branch does not have",
        "Look at the driver role's flags: R470 has neither --rebuild-initramfs nor --kernel-module-type",
        "nvidia-installer option_table.h",
        sign=in_log("flag-unknown"),
        treatment=Stuck("the driver's last installation failed"),
    ),
    FailureRule(
        "dkms-build",
        r"Failed to install the kernel module through DKMS|Bad return status for module build"
        r"|Failed to build the NVIDIA kernel module",
        "the kernel module did not compile, usually because the kernel is newer than this driver release knows",
        "Read /var/lib/dkms/nvidia/VERSION/build/make.log; then boot an older kernel or name a newer R470 release",
        "nvidia-installer misc.c",
        sign=BUILD_FAILED_SIGN,
        treatment=Tangled("DKMS's tree is broken"),
    ),
    FailureRule(
        "gpu-unsupported",
        r"installed in this system is not supported by",
        "the GPU is newer (Ada, Hopper, Blackwell) or older than this driver branch supports",
        "Choose a stack whose driver supports this GPU",
        "NVIDIA/nvtrust#55",
        sign=GPU_UNSUPPORTED_SIGN,
        treatment=ForPeople(),
    ),
    FailureRule(
        "no-device",
        r"could not insert '?nvidia'?: No such device|^No devices were found",
        "the driver finds no card that it can drive: another driver has it, it is too new or too old, or dead",
        "Read dmesg | grep NVRM and lspci -nnk -d 10de: on the host",
        "nvidia-installer kernel.c",
        sign=NO_DEVICE_SIGN,
        treatment=Hardware("power cycle", CYCLE, tries=1, layer="driver"),
    ),
    FailureRule(
        "version-mismatch",
        r"Driver/library version mismatch|NVRM: API mismatch",
        "the loaded kernel module is of another version than the user-space libraries",
        "Reboot, or end what uses the GPU and reload the module",
        "shine-cluster#50",
        sign=VERSION_MISMATCH_SIGN,
    ),
    FailureRule(
        "module-missing",
        r"couldn't communicate with the NVIDIA driver|Module nvidia(-uvm)? not found",
        "there is no NVIDIA module for the running kernel, often after a kernel upgrade",
        "Provision again: the driver role builds it with DKMS",
        "GoogleCloudPlatform/compute-gpu-installation#18",
        sign=MISSING_SIGN,
    ),
    FailureRule(
        "gpu-lost",
        r"GPU has fallen off the bus|GPU is lost",
        "a GPU stopped answering on PCIe: power, heat or hardware",
        "Drain the host and cycle its power; if it recurs, have the card replaced",
        "NVIDIA Xid catalog, Xid 79",
        sign=GPU_LOST_SIGN,
        treatment=Hardware(
            "power cycle", f"NVIDIA's Xid catalog: 79 RESTART_BM; {GPUD}", explains=("no-gpu", FEWER_CARDS)
        ),
    ),
    FailureRule(
        "fabric-manager-version",
        r"driver interface version \S+ don't match with driver version",
        "Fabric Manager is not of exactly the driver's version",
        "Install nvidia-fabricmanager-470 of the driver's version and hold it (the driver role does)",
        "Azure/azhpc-images#86",
        sign=fabric.VERSION_SIGN,
    ),
    FailureRule(
        "fabric-not-ready",
        r"system not yet initialized|cudaErrorSystemNotReady",
        "the host has NVSwitches and Fabric Manager does not run",
        "Start nvidia-fabricmanager and read its journal",
        "pytorch/pytorch#35710",
        sign=fabric.NOT_READY_SIGN,
    ),
    FailureRule(
        "fabric-nothing-to-do",
        r"NV_WARN_NOTHING_TO_DO",
        "Fabric Manager was started on a host without NVSwitches",
        "Disable nvidia-fabricmanager there; nothing is wrong with the GPUs",
        "leptonai/gpud fabric-manager",
        sign=fabric.NOTHING_SIGN,
    ),
)
