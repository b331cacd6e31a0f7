"""Faults of the module and its kernel: failed builds, other kernel series, Secure Boot, unattended upgrades."""

from __future__ import annotations

from hostwright.audit.failures.logs import LAST_JOBS
from hostwright.plan.host.hostfacts import UNAME
from hostwright.plan.model import Answer, Facts, Probe
from hostwright.resources.packages.packages import DPKG
from hostwright.resources.system.bootloader import BOOT_LOADER
from hostwright.resources.system.kernel import HEADERS, KERNEL_GONE
from hostwright.standard.roles.driver.failures.build import BUILD_TOOLS
from hostwright.standard.roles.driver.failures.kernel import KERNELS, OPEN_DRIVERS, UNATTENDED
from hostwright.standard.roles.driver.failures.logs import INSTALLER_LOG
from hostwright.standard.roles.driver.failures.state import DKMS_TREE
from hostwright.standard.roles.driver.failures.units import PERSISTENCED, UNITS
from hostwright.standard.roles.driver.states.gpu_use import DISPLAY, SECURE_BOOT
from hostwright.standard.roles.driver.states.modprobe import MODPROBE
from hostwright.standard.roles.driver.states.steps import INSTALLING
from tests.lab.audit.made_up_cards import REPORT
from tests.lab.audit.made_up_case import Answers, Change, log, made_up, says, together
from tests.lab.audit.made_up_smi import fails
from tests.unit.support.driver_contexts import failed_job, grub

VERSION = "470.182.03"  #: version of the clean host's driver
UNKNOWN = "2.6.32-5-amd64"  #: a kernel of a series that the lab's stack does not name
SILENT = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
CHECK = "The compiler used to build the kernel does not exactly match"

SYSLOG = f"{PERSISTENCED}: nvidia-persistenced failed to initialize. Check syslog.\n"


def driver(**values: str) -> Change:
    """Set values of the driver's state; an empty value removes its line."""

    def change(facts: Facts) -> Answers:
        state = _state(facts)
        others = [line for line in facts[state].text.splitlines() if line.partition("=")[0] not in values]
        return {state: Answer(0, "\n".join([*others, *(f"{key}={text}" for key, text in values.items() if text), ""]))}

    return change


def make_log(error: str) -> Change:
    """DKMS failed to build the module for the running kernel with this compiler error."""

    def change(facts: Facts) -> Answers:
        kernel = facts[UNAME].text.partition(" ")[0]
        first = f"log {VERSION} DKMS make.log for nvidia-{VERSION} for kernel {kernel} (x86_64)"
        return {DKMS_TREE: Answer(0, f"tree {VERSION}\n{first}\nerror {VERSION} {error}\n")}

    return together(UNBUILT, change)


def installer(line: str) -> Change:
    """The installer's log ends with this error."""
    return says(INSTALLER_LOG, f"nvidia-installer log file\nERROR: {line}\nERROR: Installation has failed.\n")


def bootable(name: str, *, headers: bool = True, module: str = "", default: str = "0") -> Change:
    """Add a kernel to /boot, first in GRUB's menu."""
    row = f"kernel {name} {'yes' if headers else 'no'} {module}\n"
    return lambda facts: {
        KERNELS: Answer(0, facts[KERNELS].text + row),
        BOOT_LOADER: Answer(0, grub(name, facts[UNAME].text.partition(" ")[0], default=default)),
    }


def booted_with(words: str) -> Change:
    """GRUB starts the running kernel next, with these arguments on its command line."""
    return lambda facts: {BOOT_LOADER: Answer(0, grub(facts[UNAME].text.partition(" ")[0], words=words))}


def unattended(*fenced: str) -> Change:
    """unattended-upgrades is installed and enabled, and excludes these packages."""
    rows = "".join(f'Unattended-Upgrade::Package-Blacklist:: "{name}";\n' for name in fenced)
    settings = f'APT::Periodic::Unattended-Upgrade "1";\n{rows}'
    return lambda facts: {
        DPKG: Answer(0, f"{facts[DPKG].text}unattended-upgrades\t2.8\tii \n"),
        UNATTENDED: Answer(0, settings),
    }


def persistenced(active: str, sub: str, result: str = "success") -> Change:
    """Set systemd's state of the daemon, with persistence mode on."""
    shown = f"Id={PERSISTENCED}\nLoadState=loaded\nActiveState={active}\nSubState={sub}\nResult={result}"

    def change(facts: Facts) -> Answers:
        blocks = facts[UNITS.states].text.rstrip("\n").split("\n\n")
        units = [shown if f"Id={PERSISTENCED}\n" in f"{block}\n" else block for block in blocks]
        return {UNITS.states: Answer(0, "\n\n".join(units) + "\n")}

    return change


def kernel(name: str) -> Change:
    """Set the running kernel."""
    return says(UNAME, f"{name} x86_64\n")


def _state(facts: Facts) -> Probe:
    """Return the driver role's own probe with the stack's version."""
    return next(probe for probe in facts if f"\ninstalling={INSTALLING}\n" in probe.script)


UNBUILT = driver(module="", dkms="")
UNLOADED = together(driver(loaded="", uvm=""), fails(9, SILENT))


def kernels_say(line: str) -> Change:
    """Add a line about the host's kernels."""
    return lambda facts: {KERNELS: Answer(0, f"{facts[KERNELS].text}{line}\n")}


KERNEL = (
    made_up("an initramfs with the module of before", kernels_say("holds /boot/initrd.img-6.1.0-9-amd64"),
            "initramfs-old-module"),
    made_up("an initramfs that did not fit", kernels_say("empty /boot/initrd.img-6.1.0-9-amd64"), "initramfs-missing"),
    made_up("a kernel on which the driver does not build", together(kernel(UNKNOWN), UNBUILT), "kernel-unsupported"),
    made_up("a kernel on which nobody knows it to build", kernel(UNKNOWN), "kernel-untested"),
    made_up("the running kernel removed", says(KERNEL_GONE, "6.1.0-18-amd64\n"), "kernel-removed"),
    made_up("a newer kernel without headers", bootable("6.99.0-1-amd64", headers=False), "next-kernel-without-driver"),
    made_up("a newer kernel with another driver's module", bootable("6.99.0-1-amd64", module="460.32.03"),
            "next-kernel-without-driver"),
    made_up("a newer kernel with its module", bootable("6.99.0-1-amd64", module=VERSION)),
    made_up("a newer kernel with headers that nobody builds for", bootable("6.99.0-1-amd64"),
            "next-kernel-without-driver"),
    made_up("a newer kernel, and GRUB keeps to the running one",
            bootable("6.99.0-1-amd64", headers=False, default="1>1")),
    made_up("an older kernel that GRUB starts", bootable("4.19.0-20-amd64", headers=False),
            "next-kernel-without-driver"),
    made_up("an older kernel without a module", bootable("4.19.0-20-amd64", headers=False, default="1>1")),
    made_up("a newer kernel, and a boot loader that is not read",
            together(bootable("6.99.0-1-amd64", headers=False), says(BOOT_LOADER, "other /efi/loader/loader.conf\n"))),
    made_up("a command line of the next boot that keeps the module away",
            booted_with("module_blacklist=nvidia"), "module-blacklisted-at-boot"),
    made_up("a command line that kept the module away",
            together(UNLOADED, says(MODPROBE, "kernel module_blacklist=nvidia\n")), "module-blacklisted-at-boot",
            REPORT),
    made_up("a file that kept the module away",
            together(UNLOADED, says(MODPROBE, "/usr/lib/modprobe.d/a.conf:1:install nvidia /bin/false\n")),
            "module-disabled", REPORT),
    made_up("no headers to build a module with", together(UNBUILT, says(HEADERS, status=1)), "no-headers"),
    made_up("no compiler to build a module with", together(UNBUILT, says(BUILD_TOOLS, "cc\nmake\n")), "no-compiler"),
    made_up("no compiler, and nothing to build", says(BUILD_TOOLS, "cc\nmake\n")),
    made_up("a compiler older than the kernel's",
            make_log("cc: error: unrecognized command-line option '-ftrivial-auto-var-init=zero'"), "compiler-too-old"),
    made_up("a function that became GPL-only",
            make_log("ERROR: modpost: GPL-incompatible module nvidia.ko uses GPL-only symbol 'rcu_read_unlock_strict'"),
            "gpl-only-symbol"),
    made_up("a build that nobody has met yet", make_log("nv-mmap.c:1:2: error: implicit declaration of function 'x'"),
            "dkms-build"),
    made_up("another compiler than the kernel's", together(UNBUILT, installer(f"Failed CC version check: {CHECK}")),
            "compiler-mismatch"),
    made_up("a version left in DKMS's tree",
            together(UNBUILT, installer(f"Error! DKMS tree already contains: nvidia-{VERSION}")), "stale-dkms"),
    made_up("an installer that could not unload the module",
            together(driver(cut="yes"), installer("An NVIDIA kernel module 'nvidia' appears to already be loaded")),
            "module-in-use"),
    made_up("a module of others that keeps the driver in the kernel",
            driver(lost="/usr/bin/nvidia-smi", holder="gdrdrv"), "module-held driver-files-lost"),
    made_up("an option that the installer does not have",
            together(driver(cut="yes"), installer("Invalid commandline, please run `nvidia-installer --help`")),
            "flag-unknown"),
    made_up("a package's module that wins over DKMS's",
            driver(module="470.161.03", packaged="/lib/modules/x/updates/nvidia.ko, of the package backport"),
            "module-of-package"),
    made_up("an installer that failed, and all is well since", installer("Failed CC version check")),
    made_up("Secure Boot without a key of ours", together(UNLOADED, says(SECURE_BOOT, "on\n")),
            "module-not-signed", REPORT),
    made_up("a module that the kernel refuses",
            together(UNLOADED, log((1, "Loading of module with unavailable key is rejected"))),
            "module-not-signed", REPORT),
    made_up("a module that a container may not load",
            together(UNLOADED, says(LAST_JOBS, failed_job("driver", "hostwright: no kernel module can be loaded on this"
                                                          " host: root lacks CAP_SYS_MODULE, as in a container"))),
            "module-loading-off job-failed", REPORT),
    made_up("Secure Boot, and the module is loaded", says(SECURE_BOOT, "on\n")),
    made_up("a module that is there and not loaded", UNLOADED, "module-not-loaded", REPORT),
    made_up("a screen on a host whose driver is due",
            together(driver(cut="yes"), says(DISPLAY, "gdm.service\n")), "x-server driver-install-cut"),
    made_up("a screen on a host that is well", says(DISPLAY, "gdm.service\n")),
    made_up("nouveau free to take the card", says(OPEN_DRIVERS, "there nouveau\n"), "nouveau-not-blocked"),
    made_up("nova free to take the card", says(OPEN_DRIVERS, "there nouveau\noff nouveau\nthere nova_core\n"),
            "nouveau-not-blocked"),
    made_up("upgrades that nobody fences", unattended("libc6"), "upgrades-not-fenced"),
    made_up("persistence mode by hand, its daemon stopped", persistenced("inactive", "dead"), "persistenced-stopped"),
    made_up("a persistence daemon that ends with an error",
            together(persistenced("failed", "failed", "exit-code"),
                     says(UNITS.journals, SYSLOG)),
            "driver-unit-failed"),
)  # fmt: skip
