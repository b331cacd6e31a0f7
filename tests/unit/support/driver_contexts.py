"""Audit contexts of a host with the real roles base and driver: as desired, except for a test's answers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache

from hostwright.audit.failures.logs import LAST_JOBS
from hostwright.audit.failures.rule import FailureRule
from hostwright.audit.judging.context import AuditContext, Unread
from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.host import jobs
from hostwright.plan.host.hostfacts import AVX, MEMORY, OS_RELEASE, PCI, PYTHONS, UNAME
from hostwright.plan.model import Answer, Facts, Probe
from hostwright.plan.roles.role import RoleContext
from hostwright.resources.packages.packages import DPKG
from hostwright.resources.system.bootloader import BOOT_LOADER
from hostwright.stack.stack import Stack
from hostwright.standard.roles.base import Base, base
from hostwright.standard.roles.driver import Driver, driver
from hostwright.standard.roles.driver.failures import build as driver_build
from hostwright.standard.roles.driver.failures import install as driver_install
from hostwright.standard.roles.driver.failures import kernel, logs, units
from hostwright.standard.roles.driver.failures import load as driver_load
from hostwright.standard.roles.driver.failures import state as driver_state
from hostwright.standard.roles.driver.failures.build import BUILD_RULES
from hostwright.standard.roles.driver.failures.install import INSTALL_RULES
from hostwright.standard.roles.driver.failures.kernel import KERNEL_RULES
from hostwright.standard.roles.driver.failures.load import LOAD_RULES
from hostwright.standard.roles.driver.failures.messages import MESSAGES
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI
from hostwright.standard.roles.driver.states.fabric import FABRIC
from hostwright.standard.roles.driver.states.modprobe import MODPROBE
from hostwright.standard.roles.driver.states.others import no_other_driver
from hostwright.standard.roles.driver.states.runfile import NvidiaRunfile
from hostwright.standard.roles.driver.xids.kernellog import KERNEL_LOG
from tests.unit.roles import test_role_base, test_role_driver
from tests.unit.roles.test_role_driver import OTHER, T4, V, state
from tests.unit.support import stacks
from tests.unit.support.auditcontexts import show, shown
from tests.unit.support.facts import Reply, answer
from tests.unit.support.known import CARD_PROBES, CARDS, KNOWN

STATES = units.UNITS.states
STACK = test_role_driver.STACK
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
BOOT = NOW - timedelta(days=1)
KERNEL = test_role_base.KERNEL
LIB = "/usr/lib/x86_64-linux-gnu"
DRIVER = (*MESSAGES, *BUILD_RULES, *LOAD_RULES, *INSTALL_RULES, *KERNEL_RULES)
RULES: tuple[FailureRule, ...] = tuple(rule for rule in DRIVER if rule.sign)
STATE = next(one for one in test_role_driver.RESOURCES if isinstance(one, NvidiaRunfile)).state_probe
NO_FABRIC = show("nvidia-fabricmanager.service", "inactive", "dead", load="not-found")
SMI = (
    '<?xml version="1.0" ?>\n<nvidia_smi_log>\n<driver_version>470.182.03</driver_version>\n'
    '<attached_gpus>1</attached_gpus>\n<gpu id="00000000:3B:00.0">\n<product_name>Tesla T4</product_name>\n'
    "<persistence_mode>Enabled</persistence_mode>\n</gpu>\n</nvidia_smi_log>\n"
)
FENCE = "".join(f'Unattended-Upgrade::Package-Blacklist:: "{name}";\n' for name in Base().never_unattended)
PERIODIC = 'APT::Periodic::Unattended-Upgrade "1";\n'
PACKAGES = test_role_base.PROVISIONED + "unattended-upgrades\t2.8\tii \n"
COMPILER = "Linux version 5.10.0-28-amd64 (debian-kernel@lists.debian.org) (gcc-10 (Debian 10.2.1-6) 10.2.1 20210110)\n"

Differs = Mapping[Probe, Reply | None]


def grub(*kernels: str, default: str = "0", env: str = "", words: str = "ro quiet") -> str:
    """The boot loader's files: a menu by update-grub for these kernels, with the first one at the top level as well."""
    lines = [
        (12, '   set default="${next_entry}"'),
        (16, f'   set default="{default}"'),
        (20, "}"),
    ]  # a function's brace
    entry = "menuentry '{}' --class os $menuentry_id_option '{}' {{".format
    rows = [
        entry("Debian GNU/Linux", "gnulinux-simple-1f"),
        f"\tlinux\t/boot/vmlinuz-{kernels[0]} root=UUID=1f {words}",
        "}",
    ]
    rows += ["submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-1f' {"]
    for one in kernels:
        title, id_ = f"Debian GNU/Linux, with Linux {one}", f"gnulinux-{one}-advanced-1f"
        rows += [f"\t{entry(title, id_)}", f"\t\tlinux\t/boot/vmlinuz-{one} root=UUID=1f {words}", "\t}"]
    lines += enumerate([*rows, "}"], 30)
    return f"config /boot/grub/grub.cfg\n{env}" + "".join(f"grub {number}:{line}\n" for number, line in lines)


def other(version: str = OTHER) -> dict[str, str]:
    """The libraries' lines of the driver's state, with another version."""
    return {name: f"{LIB}/{name[:-2]}.{version}" for name in ("libcuda.so.1", "libnvidia-ml.so.1")}


def listed(name: str, major: int, minor: int, mode: str = "crw-rw-rw-") -> str:
    """The output line of ``find -ls`` for a device file."""
    return f"      431      0 {mode}   1 root     root     {major:3}, {minor:3} Nov 29 05:00 /dev/{name}\n"


def libraries(text: str) -> str:
    return f"{PACKAGES}{text}"


def log(*lines: str, hours: float = 1.0) -> str:
    """A kernel log with these lines from ``hours`` hours ago, in the journal's format."""
    stamp = (NOW - timedelta(hours=hours)).isoformat(timespec="seconds")
    return "+0000\nsource journal\n" + "".join(f"{stamp} gpu01 kernel: {line}\n" for line in lines)


def failed_job(role: str, *lines: str) -> str:
    """The answer to ``LAST_JOBS``: the last job of a role failed with these last lines."""
    told = "".join(f"  {line}\n" for line in lines)
    return (
        f'job r1-{role}\nr1-{role}/status:1\nr1-{role}/job.json:{{"schema": 1, "role": "{role}\nlog r1-{role}\n{told}\n'
    )


def tree(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def failed_build(*errors: str, version: str = V, kernel: str = KERNEL) -> dict[Probe, Reply | None]:
    """Answers for a running kernel without the module; DKMS's make.log of the last build has these errors."""
    head = f"log {version} DKMS make.log for nvidia-{version} for kernel {kernel} (x86_64)"
    said = (f"error {version} {line}" for line in errors)
    return {
        STATE: state(module="", loaded="", uvm="", dkms=""),
        driver_state.DKMS_TREE: tree(f"tree {version}", head, *said),
    }


def desired(stack: Stack = STACK, variables: Driver | None = None) -> Desired:
    return Desired(
        "gpu01",
        stack,
        (
            DesiredRole("base", (), base.resources(Base(), RoleContext(stack))),
            DesiredRole("driver", ("base",), driver.resources(variables or Driver(), RoleContext(stack))),
        ),
        rules=stacks.RULES,
    )


def healthy(of: Desired) -> dict[Probe, Answer]:
    """All answers of a host that is as desired."""
    found = {probe: Answer(0, "") for rule in RULES if rule.sign for probe in rule.sign.probes}
    found |= {probe: Answer(0, "") for probe in CARD_PROBES}
    found |= dict(test_role_driver.host(of.roles[1].resources))
    found |= dict(test_role_base.host((*of.roles[0].resources, *no_other_driver(RoleContext(of.stack)))))
    replies: dict[Probe, Reply] = {
        DPKG: PACKAGES,
        PCI: T4,
        FABRIC: "",
        UNAME: f"{KERNEL} x86_64\n",
        OS_RELEASE: "ID=debian\nVERSION_ID=11\n",
        AVX: "",
        PYTHONS: "/usr/bin/python3 3.9\n",
        MEMORY: "64000000\n",
        NVIDIA_SMI: SMI,
        KERNEL_LOG: log(),
        jobs.RUNNING: "",
        LAST_JOBS: "",
        logs.INSTALLER_LOG: "",
        STATES: shown(fabricmanager=NO_FABRIC),
        driver_state.DKMS_TREE: tree(f"tree {V}", f"built {V} {KERNEL}"),
        driver_state.BOOTED: f"{BOOT.timestamp():.0f}\n",
        driver_build.COMPILERS: COMPILER + "10.2.1\n",
        driver_install.MARKED: Answer(1, ""),
        driver_load.DEVICES: "there /dev/nvidiactl\nthere /dev/nvidia-uvm\ncards 1\nsetuid\n",
        kernel.KERNELS: f"kernel 5.10.0-27-amd64 yes {V}\nkernel {KERNEL} yes {V}\n",
        MODPROBE: "/etc/modprobe.d/nvidia.conf:1:options nvidia NVreg_EnableMSI=1\n",
        BOOT_LOADER: grub(KERNEL),
        kernel.OPEN_DRIVERS: "there nouveau\noff nouveau\noff nova_core\noff nova_drm\n",
        kernel.UNATTENDED: PERIODIC + FENCE,
    }
    return found | {probe: answer(reply) for probe, reply in replies.items()}


@cache
def _desired() -> Desired:
    return desired()


@cache
def _healthy() -> Mapping[Probe, Answer]:
    return healthy(_desired())


def look_at(differs: Differs | None = None, *, stack: Stack = STACK, variables: Driver | None = None) -> AuditContext:
    """The audit context of a host that is as desired except for these answers; ``None``: a probe that did not run."""
    usual = stack is STACK and variables is None
    wanted = _desired() if usual else desired(stack, variables)
    given = dict(_healthy()) if usual else healthy(wanted)
    for probe, reply in (differs or {}).items():
        if reply is None:
            given.pop(probe, None)
        else:
            given[probe] = answer(reply)
    facts = Facts(given)
    changes = {
        role.name: tuple(
            change
            for one in role.resources
            if all(probe in facts for probe in one.probes()) and (change := one.plan(facts))
        )
        for role in wanted.roles
    }
    return AuditContext(
        wanted, {"base": Base(), "driver": variables or Driver()}, facts, changes, NOW, CARDS, KNOWN.named
    )


def evidence(name: str, differs: Differs | None = None, **more: object) -> list[str]:
    """The evidence for a rule on such a host. Raises ``Unread``."""
    sign = next(rule.sign for rule in RULES if rule.name == name)
    assert sign is not None
    return list(sign.seen(look_at(differs, **more)))  # type: ignore[arg-type]


def findings(differs: Differs | None = None, **more: object) -> dict[str, list[str]]:
    """The evidence for all rules of driver and kernel, except rules that cannot decide."""
    found = {}
    for rule in RULES:
        with suppress(Unread):
            if lines := evidence(rule.name, differs, **more):
                found[rule.name] = lines
    return found


#: answers of unhealthy hosts
H100 = "0x10de 0x030200 0x2330\n"
UNLOADED = state(loaded="", uvm="")
NO_MODULE = state(module="", loaded="", uvm="", dkms="")
ADDED = {driver_state.DKMS_TREE: tree(f"tree {V}")}
TOO_NEW = {UNAME: "6.8.0-40-generic x86_64\n"}
LOADING = "nvidia-nvlink: Nvlink Core is being initialized, major device number 235"
INIT = "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x26:0x56:1474)"
NO_DEVICES = Answer(6, "No devices were found\n")
NO_CARD = "NVRM: None of the NVIDIA devices were initialized."
MISMATCH = f"NVRM: API mismatch: the client has the version {OTHER}, but"
