"""The kind of kernel module: what a branch has, what a card needs, and what a host gets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hostwright.plan.model import Change, Deferred, Planned, Reboot
from hostwright.stack.stack import Stack
from hostwright.standard.roles.driver.modules import (
    Kind,
    installer_flags,
    kind_of_license,
    kinds_of,
    module_kind,
    signing_flags,
    unloaded_flags,
)
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.driver.states.runfile import DriverState, NvidiaRunfile
from tests.unit.roles import test_role_driver as role_driver
from tests.unit.stack.test_rules import GOOD, driver, nvidia
from tests.unit.support.shell import program, run
from tests.unit.support.stacks import RULES, check_host, check_stack

P100, V100, T4, A100, GH200, H100, B200, RTX5090 = 0x15F8, 0x1DB4, 0x1EB8, 0x20B0, 0x2342, 0x2330, 0x2901, 0x2B85


def refused(stack: Stack, *cards: int) -> list[tuple[str, str]]:
    """The rules about the driver that this host breaks, with their sentences."""
    host = replace(GOOD, kernel="6.8.0-35-generic", gpus=nvidia(*cards))
    return [(one.rule, one.sentence) for one in check_host(stack, host) if one.rule in {"gpu-driver", "gpu-module"}]


@pytest.mark.parametrize(
    ("release", "kinds"),
    [
        ("470.182.03", ("proprietary",)),
        ("515.43.04", ("proprietary", "open")),
        ("550.163.01", ("proprietary", "open")),
        ("560.35.05", ("open", "proprietary")),
        ("580.159.04", ("open", "proprietary")),
        ("610.57.04", ("open", "proprietary")),
        ("620.70.06", ("open",)),
    ],
)
def test_the_kinds_that_a_branch_has_the_preferred_one_first(release: str, kinds: tuple[Kind, ...]) -> None:
    assert kinds_of(release) == kinds


@pytest.mark.parametrize(
    ("release", "cards", "kind"),
    [
        ("580.159.04", (V100,), "proprietary"),  # the only branch that lives for Volta
        ("580.159.04", (P100, T4), "proprietary"),  # one module runs both
        ("580.159.04", (A100,), "open"),
        ("550.163.01", (A100,), "proprietary"),
        ("550.163.01", (GH200,), "open"),
        ("580.159.04", (B200,), "open"),
        ("580.159.04", (), "open"),
        ("470.182.03", (A100,), "proprietary"),
        ("620.70.06", (H100,), "open"),
    ],
)
def test_auto_takes_what_the_cards_need_and_else_what_the_branch_prefers(
    release: str, cards: tuple[int, ...], kind: Kind
) -> None:
    assert module_kind("auto", release, nvidia(*cards)) == kind


@pytest.mark.parametrize(
    ("release", "wanted", "flags"),
    [
        ("470.182.03", "proprietary", ()),
        ("535.309.01", "open", ("--kernel-module-build-directory=kernel-open",)),
        ("550.163.01", "proprietary", ("--kernel-module-build-directory=kernel",)),
        ("555.42.02", "open", ("--kernel-module-type=open",)),
        ("580.159.04", "proprietary", ("--kernel-module-type=proprietary",)),
        ("620.70.06", "open", ()),
    ],
)
def test_the_installer_is_told_the_kind_in_the_words_of_its_release(
    release: str, wanted: Kind, flags: tuple[str, ...]
) -> None:
    assert installer_flags(release, wanted) == flags


@pytest.mark.parametrize(
    ("release", "signs", "unloaded"),
    [
        ("470.182.03", False, False),  # DKMS builds and signs; keys would end the use of DKMS
        ("515.105.01", False, False),
        ("520.56.06", True, False),
        ("535.309.01", True, False),
        ("550.40.07", True, True),
        ("580.159.04", True, True),
    ],
)
def test_the_installer_gets_a_key_and_loads_nothing_from_the_release_on_that_can(
    release: str, signs: bool, unloaded: bool
) -> None:
    signing = ("--module-signing-secret-key=/k.priv", "--module-signing-public-key=/k.der")
    assert signing_flags(release, "/k.priv", "/k.der") == (signing if signs else ())
    assert signing_flags(release, "", "") == ()
    assert unloaded_flags(release) == (("--skip-module-load", "--no-nouveau-check") if unloaded else ())


def test_a_licence_tells_the_kind() -> None:
    assert (kind_of_license("Dual MIT/GPL"), kind_of_license("NVIDIA"), kind_of_license("GPL")) == (
        "open",
        "proprietary",
        None,
    )


@pytest.mark.parametrize(
    ("release", "module", "cards", "rule", "sentence"),
    [
        # "requires use of the NVIDIA open kernel modules": metal-stack/metal-images#399, runner-images-for-aws#55
        ("580.159.04", "proprietary", (B200,), "gpu-module", "Blackwell (GB100) GPUs need the open kernel module"),
        ("580.159.04", "proprietary", (RTX5090,), "gpu-module", "Blackwell (GB202) GPUs need the open"),
        ("580.159.04", "proprietary", (GH200,), "gpu-module", "Grace Hopper (GH100) GPUs need the open"),
        ("580.159.04", "open", (V100,), "gpu-module", "Volta (GV100) GPUs need the proprietary kernel module"),
        ("580.159.04", "auto", (V100, B200), "gpu-module", "no kernel module supports all GPUs"),
        ("595.91.07", "auto", (V100,), "gpu-driver", "supports GPUs from Turing to Blackwell"),
        ("620.70.06", "auto", (P100,), "gpu-driver", "not Pascal (GP100)"),
        ("570.86.16", "auto", (B200,), "gpu-driver", "HGX B200 needs driver 570.133.20 or newer"),
        ("570.211.01", "auto", (0x2BB5,), "gpu-driver", "RTX PRO 6000 Server Edition needs driver 575.57.08"),
        ("580.159.04", "auto", (0x2C3A,), "gpu-driver", "RTX PRO 4500 Server Edition needs driver 595.58.03"),
    ],
)
def test_a_card_that_the_driver_or_its_module_does_not_run_is_refused(
    release: str, module: str, cards: tuple[int, ...], rule: str, sentence: str
) -> None:
    ((found, words),) = refused(driver(release, module=module), *cards)
    assert found == rule
    assert sentence in words


@pytest.mark.parametrize(
    ("release", "module", "cards"),
    [
        ("580.159.04", "open", (B200,)),
        ("580.159.04", "auto", (V100,)),
        ("580.159.04", "proprietary", (V100, A100)),
        ("580.159.04", "open", (T4, A100, H100)),
        ("595.91.07", "auto", (T4,)),
        ("620.70.06", "auto", (B200, H100)),
        ("570.133.20", "auto", (B200,)),
        ("575.57.08", "auto", (0x2BB5,)),
        ("595.58.03", "auto", (0x2C3A,)),
        ("580.159.04", "auto", (0xFFFF,)),  # nobody knows it
    ],
)
def test_a_card_that_the_driver_runs_is_not_refused(release: str, module: str, cards: tuple[int, ...]) -> None:
    assert refused(driver(release, module=module), *cards) == []


@pytest.mark.parametrize(
    ("release", "module", "fits"),
    [
        ("470.182.03", "open", False),
        ("470.182.03", "proprietary", True),
        ("620.70.06", "proprietary", False),
        ("620.70.06", "open", True),
        ("580.159.04", "open", True),
        ("580.159.04", "proprietary", True),
    ],
)
def test_a_stack_with_a_module_that_its_driver_has_not_is_refused_before_any_host(
    release: str, module: str, fits: bool
) -> None:
    found = [one for one in check_stack(driver(release, module=module)) if one.rule == "driver-module"]
    assert len(found) == (not fits)
    assert all(one.nearest == "module: auto" for one in found)


@pytest.mark.parametrize(
    ("release", "kernel", "fits"),
    [
        ("580.105.08", "6.18.0", False),  # open-gpu-kernel-modules PR #951
        ("580.105.08", "6.17.0", True),
        ("580.119.02", "6.17.9-76061709-generic", False),  # pop-os/pop#3811
        ("580.119.02", "6.18.32-1-cachyos-lts", True),  # nvidia-all#379
        ("580.119.02", "7.0.9-1-cachyos", False),
        ("580.142", "7.1.0_1", False),  # void-packages#61087
        ("580.142", "7.0.12_1", True),
        ("580.159.04", "7.1.0_1", True),
        ("590.48.01", "6.19.0-fractal", False),  # open-gpu-kernel-modules#1021
        ("590.48.01", "6.18.20", True),
        ("550.163.01", "6.17.13-2-pve", False),  # open-gpu-kernel-modules#1143
        ("550.163.01", "6.12.117+deb13-amd64", True),  # Debian 13's own
        ("550.163.01", "7.3.4+deb13-amd64", False),  # tests/fixtures/build/make-7.3-550.txt
        ("535.309.01", "7.3.4+deb13-amd64", False),  # tests/fixtures/build/make-7.3-535.txt
        ("535.309.01", "6.1.0-57-amd64", True),  # tests/real/test_debian12.py
        ("570.153.02", "6.15.0_2", False),  # void-packages#55536
        ("575.51.02", "6.15.0-0.rc3", False),  # open-gpu-kernel-modules#840
        ("565.77", "6.13.0-aosc-main", False),  # open-gpu-kernel-modules#751
        ("530.30.02", "6.3.1", False),  # open-gpu-kernel-modules#497
        ("595.71.05", "6.12.74+deb13+1-amd64", True),  # open-gpu-kernel-modules#1128: not the kernel's fault
    ],
)
def test_kernels_on_which_others_saw_a_module_build_or_fail(release: str, kernel: str, fits: bool) -> None:
    misfits = check_host(driver(release, kernels=None), replace(GOOD, kernel=kernel, gpus=nvidia(A100)))
    assert ("driver-kernel" not in {one.rule for one in misfits}) == fits


def test_a_branch_that_ended_is_never_suggested() -> None:
    offered = {
        version for role in RULES for choice in role.choices if choice.name == "driver" for version in choice.versions
    }
    assert {version.partition(".")[0] for version in offered if version > "530"} == {"580", "595", "620"}


V = "580.159.04"
SECTION = DriverSection(version=V, artifact="driver")
RUNFILE = NvidiaRunfile(role_driver.STACK.artifact("driver"), V)


def state(**differs: str) -> str:
    """The answer of a host that has R580 with its open module."""
    values = {"license": "Dual MIT/GPL", "loaded kind": "open", **differs}
    return role_driver.state(**values).replace(role_driver.V, V)


def planned(runfile: NvidiaRunfile, nouveau: str = "", **answers: str) -> object:
    cards = answers.pop("cards", "0x10de 0x030200 0x20b0\n")
    others = {"read -r c <": cards, "drivers/nouveau": nouveau}
    return runfile.plan(role_driver.host((runfile,), **{"modinfo -k": state(**answers), **others}))


def test_a_host_that_has_the_kind_it_should_plans_nothing() -> None:
    assert planned(RUNFILE) is None
    proprietary = {"license": "NVIDIA", "loaded kind": "proprietary"}
    assert planned(RUNFILE, cards="0x10de 0x030200 0x1db4\n", **proprietary) is None
    assert planned(replace(RUNFILE, module="proprietary"), **proprietary) is None


@pytest.mark.parametrize(
    ("runfile", "cards", "have", "flag"),
    [
        (RUNFILE, "0x10de 0x030200 0x1db4\n", "its open kernel module", "--kernel-module-type=proprietary"),
        (replace(RUNFILE, module="proprietary"), "0x10de 0x030200 0x20b0\n", "its open kernel", "type=proprietary"),
    ],
)
def test_the_other_kind_of_module_is_a_change_and_the_installer_makes_it(
    runfile: NvidiaRunfile, cards: str, have: str, flag: str
) -> None:
    change = planned(runfile, cards=cards)
    assert isinstance(change, Change)
    assert have in change.have
    assert "with its proprietary kernel module" in change.want
    assert change.disturbs
    assert any(flag in step.script for step in change.steps)


def test_a_module_of_the_other_kind_in_the_kernel_waits_for_a_reboot() -> None:
    reboot = planned(RUNFILE, **{"loaded kind": "proprietary"})
    assert isinstance(reboot, Reboot)
    assert (reboot.have, reboot.want) == ("the proprietary kernel module loaded", "the open one")


BOUND = {"drivers/nouveau": "0000:3b:00.0 nouveau\n"}


def bare(**answers: str) -> Planned | None:
    """What is planned on a host without any driver."""
    return RUNFILE.plan(role_driver.host((RUNFILE,), **{"modinfo -k": role_driver.BARE, **answers}))


def test_where_nouveau_has_a_card_the_installer_loads_nothing_and_the_reboot_does() -> None:
    change = bare(**BOUND)
    assert isinstance(change, Change)
    assert change.want == f"{V} with its open kernel module, by DKMS, loaded after the reboot"
    _, install = (step.script for step in change.steps)  # and none that loads it
    assert "--skip-module-load --no-nouveau-check" in install
    afterwards = planned(RUNFILE, *BOUND.values(), loaded="", uvm="", **{"loaded kind": ""})
    assert (type(afterwards), getattr(afterwards, "have", "")) == (Deferred, "not loaded")


@pytest.mark.parametrize(
    "answers",
    [
        {"/boot/vmlinuz": "gone\n"},  # no headers of the running kernel will come
        {"display-manager": "gdm.service\n"},  # the installer refuses beside an X server
        {"modinfo -k": state(module="570.133.20", loaded="570.133.20", dkms="", source="")},
    ],
)
def test_the_installer_waits_for_the_reboot_where_it_would_do_harm_before(answers: dict[str, str]) -> None:
    assert isinstance(bare(**{**BOUND, **answers}), Deferred)


@pytest.mark.parametrize(
    ("answer", "key"),
    [
        ("enrolled /var/lib/shim-signed/mok/MOK.der", "/var/lib/shim-signed/mok/MOK.priv"),
        ("enrolled /var/lib/dkms/mok.pub", "/var/lib/dkms/mok.key"),
        ("enrolled /tmp/mok.pub", ""),
        ("off", ""),
    ],
)
def test_under_secure_boot_the_installer_signs_with_the_key_that_is_enrolled(answer: str, key: str) -> None:
    change = bare(SecureBoot=f"{answer}\n")
    assert isinstance(change, Change)
    script = "".join(step.script for step in change.steps)
    assert ("--module-signing-secret-key" in script) == bool(key)
    if key:
        certificate = answer.partition(" ")[2]
        assert f"--module-signing-secret-key={key} --module-signing-public-key={certificate}" in script


def test_a_driver_with_one_kind_alone_is_never_of_the_wrong_one() -> None:
    assert role_driver.plan(**{"modinfo -k": role_driver.state(license="GPL")}) == []
    assert role_driver.plan(**{"modinfo -k": role_driver.state(license="Dual MIT/GPL")}) == []


@pytest.mark.parametrize(
    ("license_", "loaded", "kinds"),
    [
        (
            "Dual MIT/GPL",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release",
            ("open", "open"),
        ),
        ("NVIDIA", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue", ("proprietary", "proprietary")),
        ("GPL", "of another kind", (None, "proprietary")),
    ],
)
def test_the_probe_tells_the_kind_on_disk_and_in_the_kernel(
    tmp_path: Path, license_: str, loaded: str, kinds: tuple[Kind | None, Kind | None]
) -> None:
    """The licence of nvidia-uvm is "Dual MIT/GPL" in both kinds, and tells nothing."""
    rows = ("filename: /lib/modules/x/updates/dkms/nvidia.ko", f"version: {V}", f"license: {license_}")
    uvm = ("filename: /lib/modules/x/updates/dkms/nvidia-uvm.ko", f"version: {V}", "license: Dual MIT/GPL")
    program(tmp_path / "bin", "modinfo", "\n".join(f"echo '{row}'" for row in (*rows, *uvm)))
    program(tmp_path / "bin", "ldconfig", "true")
    (tmp_path / "nvidia").mkdir()
    (tmp_path / "nvidia/version").write_text(f"{V}\n")
    (tmp_path / "version").write_text(f"NVRM version: {loaded}\nGCC version:  gcc 13\n")
    script = RUNFILE.state_probe.script.replace("/sys/module/nvidia", str(tmp_path / "nvidia"))
    script = script.replace("/proc/driver/nvidia/version", str(tmp_path / "version"))
    found = DriverState.read(run(f"set +eu\n{script}", path=tmp_path / "bin").stdout.decode())
    assert (found.kind, found.loaded_kind) == kinds
    assert (found.module, found.loaded) == (V, V)
