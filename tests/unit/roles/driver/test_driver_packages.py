"""The driver from packages: what a stack may say, what is due on a host, and what keeps apt from moving it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from hostwright.audit.judging.context import AuditContext
from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.model import Answer, Change, Deferred, Facts, Planned, Reboot, Refusal
from hostwright.plan.roles.role import RoleContext
from hostwright.resources.files.files import File
from hostwright.resources.packages.dpkg import HOLD
from hostwright.resources.packages.packages import DPKG, DebsAbsent, named_like
from hostwright.resources.system.services import Disturbing
from hostwright.stack.stack import AptRepository
from hostwright.stack.store.debs import PackageMirror
from hostwright.standard.roles.base import Base, base
from hostwright.standard.roles.driver import Driver, driver
from hostwright.standard.roles.driver.failures.kernel import KERNEL_RULES, MOVING
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.driver.states.others import PREFERENCES
from hostwright.standard.roles.driver.states.packages import DriverPackagesGone, NvidiaPackages
from hostwright.standard.roles.driver.states.removal import DriverGone
from hostwright.standard.roles.driver.states.runfile import NvidiaRunfile, driver_packages
from tests.unit.stack.test_rules import GOOD, nvidia
from tests.unit.support.facts import changes_of, facts_for
from tests.unit.support.forks import forks
from tests.unit.support.library_contexts import NOW, seen
from tests.unit.support.shell import program, run
from tests.unit.support.stacks import check_host, check_stack, load_stack

STACKS = Path(__file__).parents[4] / "inventory" / "stacks"
STACK = load_stack("debian-13-r550", [STACKS])
SECTION = STACK.section(DriverSection)
V = "550.163.01"
OTHER = "550.163.02"
LIB = "/usr/lib/x86_64-linux-gnu/nvidia/current"
RESOURCES = driver.resources(Driver(), RoleContext(STACK))
INSTALLED = next(one for one in RESOURCES if isinstance(one, NvidiaPackages))
ROWS = "".join(f"{name}\t{version}\thi \n" for name, version in SECTION.packages.items())


def state(**differs: str) -> str:
    lines = {
        "module": V,
        "license": "Dual MIT/GPL",
        "loaded": V,
        "loaded kind": "open",
        "uvm": "yes",
        "libcuda.so.1": f"{LIB}/libcuda.so.{V}",
        "libnvidia-ml.so.1": f"{LIB}/libnvidia-ml.so.{V}",
    }
    return "".join(f"{key}={value}\n" for key, value in {**lines, **differs}.items() if value)


BARE = "libcuda.so.1=\nlibnvidia-ml.so.1=\n"


def planned(text: str = "", rows: str = ROWS, **answers: str | Answer) -> Planned | None:
    replies = {
        "modinfo -k": text or state(),
        "dpkg-query -W": rows,
        "extended_states": "",
        "drivers/nouveau": "",
        "/boot/vmlinuz": "",
        "SecureBoot": "off\n",
        "display-manager": "",
        "for word in": "",
        **answers,
    }
    found = changes_of(INSTALLED, replies)
    return found[0] if found else None


#: the rule that is planted here, for test_failures_planted
PLANTED = {"driver-not-held"}


# --- the section


def section(**values: object) -> DriverSection:
    known = {"version": V, "packages": {"libcuda1": f"{V}-1", "nvidia-open-kernel-dkms": f"{V}-1"}}
    return DriverSection.model_validate({**known, **values})


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"artifact": "driver"}, "the driver has both artifact and packages"),
        ({"packages": {}}, "no driver is set; set artifact (the name of its .run file)"),
        ({"source": "runfile"}, "source is runfile, but the stack sets the packages"),
        (
            {"source": "packages", "packages": {}, "artifact": "driver"},
            "source is packages, but the stack sets the ru",
        ),
        ({"packages": {}, "artifact": "driver", "components": ("contrib",)}, "this driver is a .run file"),
        ({"packages": {"libcuda1": "535.309.01-0+deb12u1"}}, "packages contain libcuda1 535.309.01-0+deb12u1; use the"),
        ({"packages": {"nvidia-support": "1.0"}}, "no package of this version"),
        ({"packages": {"libcuda1": ""}}, "String should match pattern"),
        ({"packages": {"libcuda1": "latest"}}, "String should match pattern"),
        ({"module": "proprietary"}, "`module` is proprietary, but `packages` contain the open module"),
        (
            {"components": ("main",), "repository": AptRepository(name="n", uri="https://example.org", key="k")},
            "both repository and components",
        ),
    ],
)
def test_a_section_that_contradicts_itself_is_refused(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValidationError) as error:
        section(**values)
    assert sentence in str(error.value)


def test_helpers_may_be_of_another_version() -> None:
    helpers = {"nvidia-modprobe": "570.133.07-1", "nvidia-persistenced": "535.171.04-1~deb12u1"}
    assert section(packages={"libcuda1": f"{V}-1", **helpers}).source is None


@pytest.mark.parametrize(
    ("package", "kind"),
    [
        ("nvidia-open-kernel-dkms", "open"),
        ("nvidia-kernel-open-dkms", "open"),
        ("nvidia-dkms-535-open", "open"),
        ("linux-modules-nvidia-535-server-open-6.8.0-88-generic", "open"),
        ("nvidia-kernel-dkms", "proprietary"),
        ("linux-modules-nvidia-535-server-6.8.0-88-generic", "proprietary"),
    ],
)
def test_the_set_says_which_kind_of_module_it_brings(package: str, kind: str) -> None:
    assert section(packages={"libcuda1": f"{V}-1", package: f"{V}-1"}).kind == kind


def test_debians_own_stack_fits_together_and_says_on_which_kernels() -> None:
    assert check_stack(STACK) == []
    host = replace(GOOD, distribution="debian", version="13", kernel="6.12.57+deb13-amd64", gpus=nvidia(0x1EB8))
    assert check_host(STACK, host) == []
    (refusal,) = check_host(STACK, replace(host, kernel="6.12.118+deb13-amd64"))
    assert refusal.rule == "driver-kernel"


# --- what is due


def test_a_host_that_has_the_set_plans_nothing() -> None:
    assert planned() is None


def test_a_bare_host_gets_the_set_in_one_run_and_the_module_loaded() -> None:
    change = planned(BARE, "bash\t5.1\tii \n")
    assert isinstance(change, Change)
    assert (change.have, change.want) == ("absent", f"{V}, from {len(SECTION.packages)} packages, held, loaded")
    install, load = (step.script for step in change.steps)
    assert f"libcuda1={V}-2" in install
    assert "--allow-downgrades" in install
    assert HOLD in install
    assert "modprobe" in load
    assert not change.disturbs


def test_another_version_leaves_the_kernel_before_its_files_go() -> None:
    """Else the host would have the libraries of one version and the module of another, until a reboot."""
    other = OTHER
    change = planned(state(loaded=other), ROWS.replace(f"libcuda1\t{V}-2", f"libcuda1\t{other}-1"))
    assert isinstance(change, Change)
    assert change.have == f"libcuda1 {other}-1"
    rehearsal, unload, install, _ = (step.script for step in change.steps)
    assert rehearsal.rstrip().splitlines()[-1] == f"prepare libcuda1={V}-2"
    assert "modprobe -r" in unload
    assert "modprobe -r" not in install
    assert change.disturbs == "replaces the driver"


def test_a_hold_alone_disturbs_nothing() -> None:
    change = planned(rows=ROWS.replace(f"libcuda1\t{V}-2\thi", f"libcuda1\t{V}-2\tii"))
    assert isinstance(change, Change)
    assert (change.have, change.disturbs, len(change.steps)) == ("libcuda1 not held", "", 1)
    assert not change.warnings


def test_a_hold_tells_of_the_reboot_that_comes_after_it() -> None:
    """An upgrade under the loaded module: the plan after this one has the reboot."""
    change = planned(state(loaded=OTHER), ROWS.replace(f"libcuda1\t{V}-2\thi", f"libcuda1\t{V}-2\tii"))
    assert isinstance(change, Change)
    assert change.warnings == (f"a reboot follows: driver {OTHER} is loaded and {V} is installed",)


def test_a_library_that_is_gone_comes_again_without_the_module() -> None:
    change = planned(state(**{"libcuda.so.1": ""}))
    assert isinstance(change, Change)
    assert "libcuda.so.1 is absent" in change.have
    (step,) = change.steps
    assert "--reinstall" in step.script
    assert f"libcuda1={V}-2" in step.script
    assert "nvidia-open-kernel-dkms" not in step.script


def test_a_library_of_somebody_else_that_wins_is_refused() -> None:
    refusal = planned(state(**{"libcuda.so.1": "/usr/local/lib/libcuda.so.470.1"}))
    assert isinstance(refusal, Refusal)
    assert refusal.rule == "other-library"
    assert "/usr/local/lib/libcuda.so.470.1 takes precedence" in refusal.sentence


@pytest.mark.parametrize("module", ["", OTHER])
def test_a_module_that_is_not_there_comes_again_with_its_package(module: str) -> None:
    change = planned(state(module=module))
    assert isinstance(change, Change)
    (step,) = change.steps
    assert f"nvidia-open-kernel-dkms={V}-2" in step.script
    assert "libcuda1=" not in step.script


def test_what_only_a_reboot_changes() -> None:
    reboot = planned(state(loaded=OTHER))
    assert isinstance(reboot, Reboot)
    assert "driver 550.163.02 is loaded" in reboot.reason
    reboot = planned(state(**{"loaded kind": "proprietary"}))
    assert isinstance(reboot, Reboot)
    assert reboot.want == "the open one"
    assert isinstance(planned(BARE, "bash\t5.1\tii \n", **{"drivers/nouveau": "0000:3b:00.0 nouveau\n"}), Deferred)


def test_a_module_that_is_not_loaded_is_loaded() -> None:
    change = planned(state(loaded="", uvm=""))
    assert isinstance(change, Change)
    assert (change.have, change.want) == ("not loaded", "loaded")


def test_secure_boot_refuses_what_dkms_builds_and_takes_what_comes_signed() -> None:
    refusal = planned(BARE, "bash\t5.1\tii \n", SecureBoot="on\n")
    assert isinstance(refusal, Refusal)
    assert refusal.rule == "secure-boot"
    signed = replace(INSTALLED, packages=("linux-modules-nvidia-535-server-open-6.8.0-88-generic=6.8.0-88.1",))
    (change,) = changes_of(signed, {"modinfo -k": BARE, "dpkg-query -W": "bash\t5.1\tii \n", "SecureBoot": "on\n"})
    assert isinstance(change, Change)


def test_a_display_refuses_a_replacement_unless_it_may_be_ended() -> None:
    rows = ROWS.replace(f"libcuda1\t{V}-2", "libcuda1\t550.163.02-1")
    refusal = planned(rows=rows, **{"display-manager": "gdm.service\n"})
    assert isinstance(refusal, Refusal)
    assert refusal.rule == "display"


def test_the_shipped_set_is_for_computing_alone() -> None:
    shown = ("nvidia-driver", "nvidia-driver-libs", "xserver-xorg-video-nvidia*", "*lib*gl*-nvidia*", "nvidia-vulkan-*")
    assert [name for name in SECTION.packages if named_like(name, shown)] == []


# --- beside it


def test_nothing_of_another_driver_goes_unless_a_source_has_the_whole_set() -> None:
    parts = (one.resource for one in RESOURCES if isinstance(one, Disturbing))
    (gone,) = (part for part in parts if isinstance(part, DebsAbsent))
    (change,) = changes_of(gone, {"dpkg-query": "nvidia-kernel-dkms\t535.309.01-0+deb12u1\thi \n", "look purge": ""})
    assert isinstance(change, Change)
    offered, take = (step.script.rstrip().splitlines()[-1] for step in change.steps)
    assert offered.startswith("offered ")
    assert f"nvidia-open-kernel-dkms={V}-2" in offered.split()
    assert take == "take purge nvidia-kernel-dkms"
    assert gone.from_mirror(PackageMirror()).instead == ()


def test_the_pins_let_the_set_come_and_nothing_else_of_its_names() -> None:
    (text,) = (one.content for one in RESOURCES if isinstance(one, File) and one.path == PREFERENCES)
    first = text.index("Package: libcuda1\nPin: version 550.163.01-2\nPin-Priority: 1001\n")
    assert first < text.index("Pin: version *\nPin-Priority: -1") < text.index("nvidia-driver*")  # the first one counts
    assert text.count("Pin-Priority: 1001") == len(SECTION.packages)


def test_the_sets_own_packages_are_not_another_driver() -> None:
    facts = facts_for(INSTALLED, {"dpkg-query -W": f"{ROWS}nvidia-driver\t550.163.02-1\tii \n"})
    assert driver_packages(facts, SECTION.kept) == ("nvidia-driver",)
    assert "libcuda1" in driver_packages(facts)
    assert SECTION.leaving()[0].startswith("!")
    assert "!libcuda1" in SECTION.leaving()


def test_a_driver_from_a_run_goes_before_the_set_comes() -> None:
    kinds = [type(one) for one in RESOURCES]
    assert kinds.index(DriverGone) < kinds.index(NvidiaPackages)
    assert NvidiaRunfile not in kinds


def test_unattended_upgrades_leave_the_set_alone() -> None:
    files = [one for one in base.resources(Base(), RoleContext(STACK)) if isinstance(one, File)]
    (text,) = (one.content for one in files if one.path.endswith("52hostwright"))
    assert '"libcuda1$";' in text
    assert '"nvidia-";' in text


def test_removal_takes_the_module_out_of_the_kernel_before_its_packages() -> None:
    (gone,) = INSTALLED.removal()
    assert gone == DriverPackagesGone(tuple(SECTION.packages))
    answers = {"dpkg-query -W -f='${Package}:": ROWS, "/sys/module/nvidia/version": f"{V}\n"}
    (change,) = changes_of(gone, answers)
    assert isinstance(change, Change)
    assert "modprobe -r" in change.steps[0].script
    assert change.disturbs == "takes the driver away"
    (change,) = changes_of(gone, {**answers, "/sys/module/nvidia/version": ""})
    assert isinstance(change, Change)
    assert not change.disturbs


def test_a_card_before_turing_is_refused_on_the_open_set() -> None:
    host = replace(GOOD, distribution="debian", version="13", kernel="6.12.57+deb13-amd64", gpus=nvidia(0x1DB4))
    assert "gpu-module" in {one.rule for one in check_host(STACK, host)}


def test_a_package_of_the_set_that_an_upgrade_may_move_is_seen() -> None:
    (rule,) = (rule for rule in KERNEL_RULES if rule.name in PLANTED)
    desired = Desired("gpu01", STACK, (DesiredRole("driver", ("base",), RESOURCES),))

    def found(rows: str, moving: str = "") -> list[str]:
        facts = Facts({DPKG: Answer(0, rows), MOVING: Answer(0, moving)})
        return seen(rule, AuditContext(desired, {}, facts, {"driver": ()}, NOW))

    loose = ROWS.replace(f"libcuda1\t{V}-2\thi", f"libcuda1\t{V}-2\tii")
    assert found(ROWS) == []
    assert found(loose) == [f"libcuda1 {V}-2: not held"]
    moving = f"moves libcuda1 {V}-2 550.163.01-4\nremoves nvidia-smi\nmoves libnvidia-container1 1 2\nmoves gcc 1 2\n"
    assert found(loose, moving) == [
        f"libcuda1 {V}-2: the next upgrade moves it to 550.163.01-4",
        "nvidia-smi: the next upgrade removes it",
    ]


def test_apt_is_asked_what_moves_only_where_a_drivers_package_is_not_held(tmp_path: Path) -> None:
    info = tmp_path / "info"
    script = MOVING.script.replace("/var/lib/dpkg/info/", f"{info}/")
    info.mkdir()
    (info / "libnvidia-container1.list").touch()
    assert forks(script) == 0
    (info / "libcuda1:amd64.list").touch()
    program(
        tmp_path / "bin",
        "apt-get",
        "echo 'Inst libcuda1 [1-1] (2-1 Debian:13/stable [amd64])'; echo 'Remv nvidia-smi [1-1]'",
    )
    for want, lines in (("hold", []), ("install", ["moves libcuda1 1-1 2-1", "removes nvidia-smi"])):
        program(
            tmp_path / "bin",
            "dpkg-query",
            f"echo '{want} installed libcuda1'; echo 'install installed libnvidia-container1'",
        )
        assert run(script, path=tmp_path / "bin").stdout.decode().splitlines() == lines


def test_the_probe_reads_debians_names_of_the_module(tmp_path: Path) -> None:
    """Debian's files are nvidia-current-open.ko; in the kernel the module is nvidia."""
    program(
        tmp_path / "bin",
        "modinfo",
        "case $* in *version*current-open) echo 550.163.01 ;; *license*current-open) echo 'Dual MIT/GPL' ;;"
        " *) exit 1 ;; esac",
    )
    program(tmp_path / "bin", "ldconfig", f"echo '\tlibcuda.so.1 (libc6,x86-64) => {tmp_path}/libcuda.so.1'")
    (tmp_path / f"libcuda.so.{V}").touch()
    (tmp_path / "libcuda.so.1").symlink_to(f"libcuda.so.{V}")
    answer = run(INSTALLED.state_probe.script, path=tmp_path / "bin").stdout.decode()
    assert f"module={V}\nlicense=Dual MIT/GPL\n" in answer
    assert f"libcuda.so.1={tmp_path}/libcuda.so.{V}\n" in answer
    assert "libnvidia-ml.so.1=\n" in answer
