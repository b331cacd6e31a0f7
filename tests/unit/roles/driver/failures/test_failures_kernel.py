"""What threatens a host at its next boot or upgrade is seen before; and probes' scripts say what there is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hostwright.audit.judging.context import Unread
from hostwright.plan.model import Probe
from hostwright.resources.files.files import File
from hostwright.resources.files.paths import content_probe, stat_probe
from hostwright.resources.packages.packages import DPKG
from hostwright.resources.system.bootloader import BOOT_LOADER, NO_LOADER, next_boot
from hostwright.resources.system.kernel import Initramfs
from hostwright.standard.roles.base.failures.host import NEXT_BOOT
from hostwright.standard.roles.driver.failures import build as driver_build
from hostwright.standard.roles.driver.failures import install as driver_install
from hostwright.standard.roles.driver.failures import load as driver_load
from hostwright.standard.roles.driver.failures import state as driver_state
from hostwright.standard.roles.driver.failures.kernel import KERNELS, OPEN_DRIVERS, PREFERENCES, UDEV, UNATTENDED, VFIO
from hostwright.standard.roles.driver.states.modprobe import MODPROBE
from hostwright.standard.roles.driver.states.nouveau import NOUVEAU
from tests.unit.roles import test_role_base
from tests.unit.roles.test_role_driver import BARE, OTHER, V, state
from tests.unit.support.driver_contexts import (
    COMPILER,
    FENCE,
    KERNEL,
    PACKAGES,
    PERIODIC,
    STATE,
    evidence,
    findings,
    grub,
)
from tests.unit.support.facts import NOTHING, Reply
from tests.unit.support.shell import ask, program

INITRAMFS = next(one for one in test_role_base.RESOURCES if isinstance(one, Initramfs)).probes()[0]
PINS = next(one for one in test_role_base.RESOURCES if isinstance(one, File) and one.path == PREFERENCES)
NEXT = "5.10.0-30-amd64"
NEWER: dict[Probe, Reply | None] = {
    KERNELS: f"kernel {KERNEL} yes {V}\nkernel {NEXT} no \n",
    BOOT_LOADER: grub(NEXT, KERNEL),
}
BESIDE = f"kernel {NEXT}, not the running {KERNEL}: "


@pytest.mark.parametrize(
    "rows, line",
    [
        (f"kernel {NEXT} no \n", f"{BESIDE}no module; no headers"),
        (
            "kernel 6.8.0-40-generic yes \n",
            f"{BESIDE.replace(NEXT, '6.8.0-40-generic')}no module; the module of driver {V} supports kernels <6.3",
        ),
        (f"kernel {NEXT} yes {OTHER}\n", f"{BESIDE}its module is {OTHER}"),
        (f"kernel {NEXT} yes \n", f"{BESIDE}no module; no service builds the module at boot"),
        (f"kernel {NEXT} yes \nservice\n", None),  # dkms.service does
        (f"kernel {NEXT} no {V}\n", None),
        ("kernel 5.10.0-9-amd64 no \n", None),  # older, though its name sorts behind
        ("kernel 5.4.0-200-generic no \n", None),
        ("", None),
    ],
)
def test_the_next_kernel_is_looked_at(rows: str, line: str | None) -> None:
    newest = rows.split()[1] if "6.8" in rows or NEXT in rows else KERNEL
    found = findings({KERNELS: f"kernel {KERNEL} yes {V}\n{rows}", BOOT_LOADER: grub(newest, KERNEL)})
    where = "GRUB's default entry is 'Debian GNU/Linux' (/boot/grub/grub.cfg:31)"
    assert found == ({"next-kernel-without-driver": [line, where]} if line else {})


def test_dkms_builds_nothing_that_is_not_in_its_tree() -> None:
    differs: dict[Probe, Reply | None] = {**NEWER, KERNELS: f"kernel {NEXT} yes \n", driver_state.DKMS_TREE: ""}
    assert evidence("next-kernel-without-driver", differs)[0] == f"{BESIDE}no module; the driver is not in DKMS's tree"


def test_a_bare_host_has_no_next_kernel_to_think_of() -> None:
    assert evidence("next-kernel-without-driver", {**NEWER, STATE: BARE}) == []


DEFAULT, MENU = "default /etc/default/grub:6:GRUB_DEFAULT", "config /b/grub.cfg\n"
PINNED = f"Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux {KERNEL}"


@pytest.mark.parametrize(
    "boot_loader, kernel",
    [
        (grub(NEXT, KERNEL), NEXT),
        (grub(NEXT, KERNEL, default=PINNED), KERNEL),
        (grub(NEXT, KERNEL, default="1>1"), KERNEL),
        (grub(NEXT, KERNEL, default="1"), NEXT),  # the first entry of the submenu
        (grub(NEXT, KERNEL, default=f"gnulinux-advanced-1f>gnulinux-{KERNEL}-advanced-1f"), KERNEL),
        (grub(NEXT, KERNEL, default=f"Debian GNU/Linux, with Linux {KERNEL}"), NEXT),  # its submenu is not named
        (grub(NEXT, KERNEL, default="no such entry"), NEXT),
        (grub(NEXT, KERNEL, default="${saved_entry}", env=f"env saved_entry={PINNED}\n"), KERNEL),
        (grub(NEXT, KERNEL, default="${saved_entry}"), NEXT),
        (grub(NEXT, KERNEL, default=PINNED, env="env next_entry=0\n"), NEXT),  # once
        ('config /boot/grub/grub.cfg\ngrub 1:set default="5.10.0-28-amd64"\n', KERNEL),
        (f"config /boot/grub/grub.cfg\ngrub 1:set default='{PINNED}'\n", KERNEL),
        (f"{DEFAULT}=0\ndefault /etc/default/grub.d/9.cfg:1:GRUB_DEFAULT='{PINNED}'\n", KERNEL),
        (f"{DEFAULT}=saved\nenv saved_entry=gnulinux-{KERNEL}-advanced-1f\n", KERNEL),
        (f"{DEFAULT}=0\n", NEXT),
        (f"{MENU}link /vmlinuz boot/vmlinuz-{KERNEL}\ngrub 1:menuentry 'own' {{ linux /vmlinuz ro; }}\n", KERNEL),
    ],
)
def test_what_grub_starts_decides(boot_loader: str, kernel: str) -> None:
    """vast-ai/docs#935: a newer kernel beside a pinned one threatens nobody, an older one that is pinned does."""
    boot = next_boot(boot_loader, [NEXT, KERNEL])
    assert (boot.kernel, boot.unknown) == (kernel, "")
    found = evidence("next-kernel-without-driver", {**NEWER, BOOT_LOADER: boot_loader})
    assert found == ([] if kernel == KERNEL else [f"{BESIDE}no module; no headers", boot.why])


@pytest.mark.parametrize(
    "boot_loader, why",
    [
        ("", NO_LOADER),
        (
            "other /boot/efi/loader/loader.conf\n",
            "the host uses /boot/efi/loader/loader.conf, whose configuration Hostwright cannot read",
        ),
        (
            f"{MENU}grub 1:blscfg\n",
            "/b/grub.cfg loads its entries from /boot/loader/entries, which Hostwright cannot read",
        ),
        (
            f"{MENU}grub 2:menuentry 'Windows' {{\ngrub 3:}}\n",
            "GRUB's default entry 'Windows' (/b/grub.cfg:2) has no Linux kernel",
        ),
        (f"{MENU}grub 2:set default='own'\n", "GRUB's default is 'own' (/b/grub.cfg), and GRUB's menu is missing"),
    ],
)
def test_a_choice_that_is_not_read_is_no_claim(boot_loader: str, why: str) -> None:
    with pytest.raises(Unread) as raised:
        evidence("next-kernel-without-driver", {**NEWER, BOOT_LOADER: boot_loader})
    assert str(raised.value) == f"{why}; {BESIDE}no module; no headers"
    same: dict[Probe, Reply | None] = {KERNELS: f"kernel {KERNEL} yes {V}\n", BOOT_LOADER: boot_loader}
    assert evidence("next-kernel-without-driver", same) == []


def test_an_older_kernel_that_grub_has_saved_is_seen() -> None:
    older: dict[Probe, Reply | None] = {
        KERNELS: f"kernel {KERNEL} yes {V}\nmodules 5.10.0-9-amd64 no \n",
        BOOT_LOADER: 'config /g\ngrub 1:set default="${saved_entry}"\nenv saved_entry=5.10.0-9-amd64\n',
    }
    assert findings(older) == {
        "next-kernel-without-driver": [
            f"kernel 5.10.0-9-amd64, not the running {KERNEL}: no module; no headers",
            "GRUB's default is '5.10.0-9-amd64' (/g)",
        ]
    }


def test_submenus_as_deep_as_a_host_likes_are_read() -> None:
    deep = "".join(f"grub {number}:submenu 'x' {{\n" for number in range(5000))
    text = f"config /g\n{deep}grub 5001:menuentry 'a' {{\ngrub 5002:linux /vmlinuz-{KERNEL}\n"
    assert next_boot(text, ()).kernel == KERNEL


def test_the_next_boots_command_line_is_read() -> None:
    words = "ro modprobe.blacklist=nouveau,nvidia-uvm rd.driver.blacklist=nvidia nvidia.NVreg_EnableMSI=1"
    setting = f'default /etc/default/grub:9:GRUB_CMDLINE_LINUX_DEFAULT="{words}"\n'
    found = findings({BOOT_LOADER: grub(KERNEL, words=words) + setting})
    word = "modprobe.blacklist=nouveau,nvidia-uvm"
    assert found == {"module-blacklisted-at-boot": [f"/boot/grub/grub.cfg:31: {word}", f"/etc/default/grub:9: {word}"]}
    assert findings({BOOT_LOADER: grub(KERNEL, words="ro module_blacklist=nouveau nvidia_drm.modeset=1")}) == {}


def test_words_that_are_not_yet_in_grubs_menu_are_told_too() -> None:
    setting = 'default /etc/default/grub.d/50-x.cfg:2:GRUB_CMDLINE_LINUX="module_blacklist=nvidia"\n'
    told = "/etc/default/grub.d/50-x.cfg:2: module_blacklist=nvidia (update-grub puts it into GRUB's menu)"
    assert findings({BOOT_LOADER: grub(KERNEL) + setting}) == {"module-blacklisted-at-boot": [told]}
    assert findings({BOOT_LOADER: setting}) == {"module-blacklisted-at-boot": [told]}  # its menu is not seen
    assert findings({BOOT_LOADER: f"{setting}other /efi/loader/loader.conf\n"}) == {}
    emptied = "default /etc/default/grub.d/60-x.cfg:1:GRUB_CMDLINE_LINUX=quiet\n"
    assert findings({BOOT_LOADER: grub(KERNEL) + setting + emptied}) == {}


@pytest.mark.parametrize("word", ["vfio-pci.ids=10de:1eb8,10de:10f8", "pci-stub.ids=10DE:1EB8"])
def test_a_card_that_the_command_line_gives_away_is_told(word: str) -> None:
    built_in = "built-in vfio_pci\nbuilt-in pci_stub\n"
    line = f"/boot/grub/grub.cfg:31: {word}"
    assert findings({BOOT_LOADER: grub(KERNEL, words=word), VFIO: built_in}) == {"card-for-vfio": [line]}
    assert findings({BOOT_LOADER: grub(KERNEL, words=word)}) == {}  # nobody loads it
    assert findings({BOOT_LOADER: grub(KERNEL, words=word.replace("1", "2")), VFIO: built_in}) == {}  # another card


def test_a_command_line_that_kept_the_module_away_is_the_reason() -> None:
    unloaded = state(loaded="", uvm="")
    assert findings({STATE: unloaded, MODPROBE: "kernel module_blacklist=nvidia\n"}) == {
        "module-blacklisted-at-boot": ["/proc/cmdline: module_blacklist=nvidia"]
    }
    assert findings({MODPROBE: "kernel modprobe.blacklist=nvidia\n"}) == {}  # loaded by its name all the same


def test_a_card_that_vfio_takes_first_is_told_with_what_loads_that() -> None:
    given = "/etc/modprobe.d/vfio.conf:1:options vfio-pci ids=10DE:1eb8,10de:10f8\n"
    early = "/etc/initramfs-tools/modules:12:vfio-pci\n"
    assert findings({VFIO: given + early}) == {"card-for-vfio": [given.strip(), early.strip()]}
    assert findings({VFIO: given}) == {}  # nobody loads it
    assert findings({VFIO: given.replace("1eb8", "2330") + early}) == {}  # another card


def test_a_file_that_keeps_the_module_away_is_the_reason() -> None:
    line = "/usr/lib/modprobe.d/blacklist-nvidia.conf:2:alias nvidia off\n"
    told = {"module-disabled": ["/usr/lib/modprobe.d/blacklist-nvidia.conf:2: alias nvidia off"]}
    assert findings({MODPROBE: line}) == told
    assert findings({STATE: state(loaded="", uvm=""), MODPROBE: line}) == told


def test_nouveau_that_nobody_keeps_away_is_seen() -> None:
    free = {OPEN_DRIVERS: "there nouveau\nthere nova_core\noff nova_core\n"}
    assert findings(free) == {"nouveau-not-blocked": ["nouveau: not on modprobe's blacklist"]}
    assert findings({OPEN_DRIVERS: ""}) == {}  # a kernel without it
    bound = {**free, NOUVEAU: "0000:3b:00.0 nouveau\n"}
    assert evidence("nouveau-not-blocked", bound) == []


def test_initramfs_without_the_blacklist_is_reported() -> None:
    older: dict[Probe, Reply | None] = {INITRAMFS: NOTHING}
    assert findings(older) == {"nouveau-not-blocked": ["initramfs: older than /etc/modprobe.d/hostwright-nouveau.conf"]}
    assert findings({**older, OPEN_DRIVERS: "off nouveau\n"}) == {}
    held = {**older, OPEN_DRIVERS: "", KERNELS: f"kernel {KERNEL} yes {V}\nnouveau /boot/initrd.img-{KERNEL}\n"}
    assert evidence("nouveau-not-blocked", held) == [
        f"initramfs: older than /etc/modprobe.d/hostwright-nouveau.conf; /boot/initrd.img-{KERNEL} holds nouveau"
    ]


def test_kernel_packages_that_may_move_are_seen() -> None:
    loose = {DPKG: PACKAGES.replace("linux-image-amd64\t1.0\thi", "linux-image-amd64\t1.0\tii")}
    assert findings(loose) == {"kernel-not-held": ["linux-image-amd64 1.0: not held"]}


def test_unattended_upgrades_without_a_fence_are_seen() -> None:
    assert findings({UNATTENDED: PERIODIC}) == {
        "upgrades-not-fenced": [
            "not in Unattended-Upgrade::Package-Blacklist: nvidia-, libnvidia-, cuda-, libcudnn, linux-image-,"
            " linux-headers-, linux-generic"
        ]
    }
    partly = PERIODIC + FENCE.replace('Unattended-Upgrade::Package-Blacklist:: "cuda-";\n', "")
    assert findings({UNATTENDED: partly}) == {
        "upgrades-not-fenced": ["not in Unattended-Upgrade::Package-Blacklist: cuda-"]
    }


def test_a_host_that_may_reboot_by_itself_is_named() -> None:
    own = PERIODIC + FENCE + 'Unattended-Upgrade::Automatic-Reboot "{}";\n'
    assert findings({UNATTENDED: own.format("true")}) == {
        "reboots-by-itself": ['Unattended-Upgrade::Automatic-Reboot "true", at once']
    }
    assert findings({UNATTENDED: own.format("false")}) == {}
    assert findings({NEXT_BOOT: "scheduled USEC 1795971210902728\nscheduled MODE reboot\n"}) == {
        "reboots-by-itself": ["a shutdown is scheduled for 2026-11-29 16:53 UTC"]
    }


@pytest.mark.parametrize(
    "differs",
    [
        {UNATTENDED: ""},
        {UNATTENDED: PERIODIC.replace("1", "0")},
        {UNATTENDED: PERIODIC + 'APT::Periodic::Enable "0";\n'},
        {UNATTENDED: PERIODIC, DPKG: PACKAGES.replace("unattended-upgrades", "unattended")},
        {UNATTENDED: PERIODIC, STATE: BARE},
    ],
)
def test_nothing_is_upgraded_by_who_does_not_run(differs: dict[Probe, Reply | None]) -> None:
    assert findings(differs) == {}


def test_pins_that_are_gone_or_other_are_seen() -> None:
    stat, content = stat_probe(PREFERENCES), content_probe(PREFERENCES, PINS.content)
    assert findings({stat: NOTHING, content: NOTHING}) == {"driver-not-pinned": [f"{PREFERENCES}: absent"]}
    assert findings({content: "Package: x\n"}) == {"driver-not-pinned": [f"{PREFERENCES}: other text"]}
    assert findings({stat: "regular file|600|root:root\n"}) == {}
    with pytest.raises(Unread):
        evidence("driver-not-pinned", {stat: None})


def test_a_host_with_another_driver_by_hand_is_told_what_threatens_it() -> None:
    by_hand = state(module=OTHER, loaded=OTHER, dkms="", record="")
    assert "kernel-not-held" in findings({STATE: by_hand, DPKG: PACKAGES.replace("\thi", "\tii")})


# --- the probes, by the machine's own shell


def test_dkms_tree_is_read_by_the_machines_own_shell(tmp_path: Path) -> None:
    """What DKMS 2.8 and 3.0 leave: a link for each installed kernel, and the log of a build that failed."""
    failed = tmp_path / V / "build" / "make.log"
    failed.parent.mkdir(parents=True)
    failed.write_text(
        f"DKMS make.log for nvidia-{V} for kernel {KERNEL} (x86_64)\nSat Nov 21\nmake: ok\n"
        "nv.c:1:2: error: too few arguments\n" + "nv.c:2: error: more\n" * 20 + "make: *** [Makefile:80] Error 2\n"
    )
    (tmp_path / OTHER / KERNEL / "x86_64" / "module").mkdir(parents=True)
    (tmp_path / OTHER / "original_module" / KERNEL / "module").mkdir(parents=True)
    (tmp_path / f"kernel-{KERNEL}-x86_64").symlink_to(tmp_path / OTHER / KERNEL)
    status, text = ask(driver_state.DKMS_TREE.script.replace("/var/lib/dkms/nvidia", str(tmp_path)))
    assert status == 0
    assert evidence(
        "dkms-build", {STATE: state(module="", loaded="", uvm="", dkms=""), driver_state.DKMS_TREE: text}
    ) == ["nv.c:1:2: error: too few arguments"]
    lines = text.splitlines()
    assert [line for line in lines if not line.startswith(("error", "next "))] == [
        f"tree {V}",
        f"log {V} DKMS make.log for nvidia-{V} for kernel {KERNEL} (x86_64)",
        f"tree {OTHER}",
        f"built {OTHER} {KERNEL}",
    ]
    assert len([line for line in lines if line.startswith("error")]) == 8
    assert ask(driver_state.DKMS_TREE.script.replace("/var/lib/dkms/nvidia", f"{tmp_path}/none")) == (0, "")


def test_trees_without_a_source_are_found_in_dkms_tree(tmp_path: Path) -> None:
    """negativo17/nvidia-driver#56 (a source that is gone), Zibri/Realtek-rts5229-linux-driver#17 (no dkms.conf)."""
    dkms = tmp_path / "dkms"
    for name in ("nvidia/390.48", "rts5229/1.07", "evdi/4.2.29"):
        (dkms / name).mkdir(parents=True)
        (dkms / name / "source").symlink_to(tmp_path / "src" / name.replace("/", "-"))
    (tmp_path / "src/rts5229-1.07").mkdir(parents=True)
    (tmp_path / "src/evdi-4.2.29").mkdir()
    (tmp_path / "src/evdi-4.2.29/dkms.conf").touch()
    (dkms / "nvidia/original_module").mkdir()
    (dkms / "nvidia/kernel-5.10-x86_64").symlink_to(dkms / "nvidia/390.48")
    (dkms / "dkms_dbversion").touch()
    status, text = ask(driver_state.DKMS_TREE.script.replace("/var/lib/dkms/", f"{dkms}/"))
    assert status == 0
    assert evidence("dkms-tree-broken", {driver_state.DKMS_TREE: text}) == [
        "/var/lib/dkms/nvidia/390.48/source/dkms.conf is not there",
        "/var/lib/dkms/rts5229/1.07/source/dkms.conf is not there",
    ]
    broken = text.replace("broken nvidia/390.48\n", "")
    assert evidence("dkms-other-driver", {driver_state.DKMS_TREE: broken}) == ["/var/lib/dkms/nvidia/390.48"]
    assert evidence("dkms-other-driver", {driver_state.DKMS_TREE: text}) == [], "one sentence for each"


@pytest.mark.parametrize("name", ["nvidia", "nvidia-current-open", "nvidia-current"])
def test_kernels_are_listed_with_headers_and_module(tmp_path: Path, name: str) -> None:
    """Debian's own modules have names of their own on the disk."""
    boot, modules = tmp_path / "boot", tmp_path / "modules"
    boot.mkdir()
    for kernel in (KERNEL, NEXT, "5.4.0-1-removed"):
        (boot / f"vmlinuz-{kernel}").write_text("k")
    (modules / KERNEL / "build").mkdir(parents=True)
    (modules / KERNEL / "build" / "Makefile").touch()
    (modules / NEXT).mkdir()
    asked = f'[ "$2 $3" = "{KERNEL} {name}" ]'
    program(tmp_path / "bin", "modinfo", f'{asked} && printf "filename:  /x\\nversion:  {V}\\n"')
    script = KERNELS.script.replace("/boot/", f"{boot}/").replace("/lib/modules/", f"{modules}/")
    assert ask(f"PATH={tmp_path}/bin:$PATH\n{script}") == (0, f"kernel {KERNEL} yes {V}\nkernel {NEXT} no \n")


def test_an_initramfs_is_empty_or_holds_a_module_of_before(tmp_path: Path) -> None:
    boot, modules = tmp_path / "boot", tmp_path / "modules"
    boot.mkdir()
    (boot / f"vmlinuz-{KERNEL}").write_text("k")
    (boot / f"vmlinuz-{NEXT}").touch()
    for name in (KERNEL, NEXT):
        (modules / name).mkdir(parents=True)
    (boot / f"initrd.img-{KERNEL}").write_text("x")
    os.utime(boot / f"initrd.img-{KERNEL}", (1, 1))
    (modules / "nvidia.ko").touch()
    said = f'printf "filename:  {modules}/nvidia.ko\\nversion:  {V}\\n"'
    program(tmp_path / "bin", "modinfo", f'[ "$2" = {KERNEL} ] && {said}')
    program(tmp_path / "bin", "lsinitramfs", f"echo usr/lib/modules/{KERNEL}/updates/dkms/nvidia.ko.zst")
    script = KERNELS.script.replace("/boot/", f"{boot}/").replace("/lib/modules/", f"{modules}/")
    status, text = ask(f"PATH={tmp_path}/bin:$PATH\n{script}")
    assert status == 0
    assert evidence("initramfs-old-module", {KERNELS: text}) == [
        f"{boot}/initrd.img-{KERNEL} holds an nvidia module, and is older than that on the disk"
    ]
    lacking = [f"{boot}/{name}-{NEXT} is missing or empty" for name in ("vmlinuz", "initrd.img")]
    assert evidence("initramfs-missing", {KERNELS: text}) == lacking


ENTRIES = "/boot/efi/loader/entries"
SYSTEMD = "other /boot/efi/loader/loader.conf\n" + "".join(
    f"entry {ENTRIES}/{name}:{number}:{line}\n"
    for name, version in (("old+3-1.conf", KERNEL), ("new.conf", NEXT))
    for number, line in enumerate(
        ("title Debian", f"version {version}", f"linux /vmlinuz-{version}", "options ro x"), 1
    )
)


@pytest.mark.parametrize(
    ("chosen", "kernel", "why"),
    [
        ("", NEXT, "systemd-boot uses its first entry"),
        ("loader /l.conf:1:default old*\n", KERNEL, "systemd-boot's default is 'old*' (/l.conf:1)"),
        ("loader /l.conf:1:default old\n", KERNEL, "systemd-boot's default is 'old' (/l.conf:1)"),
        ("loader /l.conf:1:default gone.conf\n", NEXT, "systemd-boot's default is 'gone.conf' (/l.conf:1)"),
        ("loader /l.conf:1:default @saved\n", NEXT, "systemd-boot's default is '@saved' (/l.conf:1)"),
        (
            "loader /l.conf:1:default new*\nchosen LoaderEntryDefault old.conf\n",
            KERNEL,
            "the firmware's variable LoaderEntryDefault is 'old.conf'",
        ),
        (
            "chosen LoaderEntryOneShot new.conf\nchosen LoaderEntryDefault old.conf\n",
            NEXT,
            "the firmware's variable LoaderEntryOneShot is 'new.conf'",
        ),
    ],
)
def test_what_systemd_boot_starts_decides(chosen: str, kernel: str, why: str) -> None:
    boot = next_boot(f"{SYSTEMD}{chosen}", [NEXT, KERNEL])
    file = f"{ENTRIES}/{'old+3-1.conf' if kernel == KERNEL else 'new.conf'}"
    assert (boot.kernel, boot.words, boot.where, boot.unknown) == (kernel, ("ro", "x"), f"{file}:3", "")
    assert boot.why == f"{why}: {file}"


def test_systemd_boots_files_are_read(tmp_path: Path) -> None:
    loader = tmp_path / "boot/efi/loader"
    (loader / "entries").mkdir(parents=True)
    (loader / "loader.conf").write_text("#timeout 3\ndefault old*\n")
    (loader / "entries/a.conf").write_text(f"title Debian\nversion {KERNEL}\nlinux /vmlinuz-{KERNEL}\noptions a b\n")
    status, text = ask(BOOT_LOADER.script.replace("/boot/", f"{tmp_path}/boot/").replace("/etc/", f"{tmp_path}/etc/"))
    assert (status, f"loader {loader}/loader.conf:2:default old*" in text.splitlines()) == (0, True)
    boot = next_boot(text, [KERNEL])
    assert (boot.kernel, boot.words) == (KERNEL, ("a", "b"))


def test_open_drivers_are_told_by_modprobe_itself(tmp_path: Path) -> None:
    program(
        tmp_path, "modprobe", "echo 'blacklist nouveau'; echo 'install nova_core /bin/false'; echo 'alias nova_drm x'"
    )
    program(tmp_path, "modinfo", '[ "$2" != nova_core ]')
    assert ask(f"PATH={tmp_path}:$PATH\n{OPEN_DRIVERS.script}") == (
        0,
        "there nouveau\noff nouveau\noff nova_core\nthere nova_drm\n",
    )
    program(tmp_path, "modprobe", "exit 1")
    assert ask(f"PATH={tmp_path}:$PATH\n{OPEN_DRIVERS.script}")[0] == 1


def test_missing_tools_are_named(tmp_path: Path) -> None:
    program(tmp_path, "make", "")
    script = driver_build.BUILD_TOOLS.script.replace("/usr/include", str(tmp_path))
    assert ask(f"PATH={tmp_path}\n{script}") == (0, "cc\ndkms\nthe headers of the C library\n")


def test_the_machines_own_answers_are_understood() -> None:
    for probe in (driver_state.BOOTED, driver_build.COMPILERS, UNATTENDED):
        assert ask(probe.script)[0] == 0
    assert evidence("gpu-init-failed", {driver_state.BOOTED: ask(driver_state.BOOTED.script)[1]}) == []
    assert COMPILER.startswith("Linux version ")
    assert ask(driver_build.COMPILERS.script)[1].startswith("Linux version ")


def test_apts_own_words_are_understood(tmp_path: Path) -> None:
    conf = tmp_path / "apt.conf"
    (file,) = (one for one in test_role_base.RESOURCES if isinstance(one, File) and one.path.endswith("/52hostwright"))
    conf.write_text(f'APT::Periodic::Unattended-Upgrade "1";\n{file.content}')
    text = ask(f"APT_CONFIG={conf}; export APT_CONFIG\n{UNATTENDED.script}")[1]
    assert PERIODIC in text
    assert findings({UNATTENDED: text}) == {}


@pytest.mark.parametrize(
    ("line", "takes"),
    [
        ("/etc/driverctl.d/pci-0000:3b:00.0:1:driverctl set-override 0000:3b:00.0 vfio-pci", True),
        ("/etc/driverctl.d/0000:3b:00.0:1:driverctl set-override 0000:3b:00.0 nvidia", False),
        ("/etc/driverctl.d/0000:5e:00.0:1:driverctl set-override 0000:5e:00.0 vfio-pci", False),  # no card
        ("/etc/tmpfiles.d/a.conf:1:w /sys/bus/pci/devices/0000:3b:00.0/driver_override - - - - vfio-pci", True),
        ("/etc/tmpfiles.d/a.conf:1:w /sys/bus/pci/devices/0000:3b:00.0/driver_override - - - - nvidia", False),
        ("/etc/rc.local:3:echo 0000:3b:00.0 > /sys/bus/pci/drivers/nvidia/unbind", True),
        ("/etc/rc.local:3:echo 0000:3b:00.0 > /sys/bus/pci/drivers/nvidia/bind", False),
        ("/etc/rc.local:3:echo nvidia > /sys/bus/pci/devices/0000:3b:00.0/driver_override", False),
        ('/etc/udev/rules.d/9.rules:1:KERNEL=="0000:3b:00.0", ATTR{driver_override}="vfio-pci"', True),
    ],
)
def test_a_card_that_each_boot_gives_to_another_driver_is_named(line: str, takes: bool) -> None:
    found = findings({UDEV: f"{line}\ncard 0000:3b:00.0\n"})
    assert found == ({"card-for-another-driver": [line]} if takes else {})


def test_a_program_in_usr_local_that_hides_the_drivers_is_named(tmp_path: Path) -> None:
    for name in ("usr/local/bin/nvidia-smi", "usr/bin/nvidia-smi", "usr/local/bin/make", "usr/local/sbin/gcc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        program((tmp_path / name).parent, (tmp_path / name).name, "exit 0")
    (tmp_path / "usr/bin/gcc").symlink_to(tmp_path / "usr/local/sbin/gcc")  # the same program
    said = ask(driver_install.HIDDEN.script.replace('"/usr/', f'"{tmp_path}/usr/'))[1]
    line = f"{tmp_path}/usr/local/bin/nvidia-smi is found before {tmp_path}/usr/bin/nvidia-smi"
    assert findings({driver_install.HIDDEN: said}) == {"program-hidden": [line]}


@pytest.mark.parametrize(("license_", "named"), [("Dual MIT/GPL", True), ("NVIDIA", False)])
def test_firmware_that_an_open_module_names_and_the_kernel_does_not_find_is_told(
    tmp_path: Path, license_: str, named: bool
) -> None:
    (tmp_path / "lib/firmware/updates/nvidia/V").mkdir(parents=True)
    (tmp_path / "lib/firmware/updates/nvidia/V/gsp_tu10x.bin.zst").touch()
    listed = r"nvidia/V/gsp_ga10x.bin\nnvidia/V/gsp_tu10x.bin\nnvidia/V/other.bin\n"
    program(tmp_path / "bin", "modinfo", f'[ "$2" = license ] && echo "{license_}" || printf "{listed}"')
    script = driver_load.FIRMWARE.script.replace("/lib/firmware", f"{tmp_path}/lib/firmware")
    status, said = ask(f"PATH={tmp_path}/bin:$PATH\n{script}")
    assert (status, said) == (0, "nvidia/V/gsp_ga10x.bin\n" if named else "")
    found = {"gsp-firmware-missing": ["/lib/firmware/nvidia/V/gsp_ga10x.bin is not there"]} if named else {}
    assert findings({driver_load.FIRMWARE: said}) == found


RULE = '/lib/udev/rules.d/50-x.rules:2:ACTION=="add", SUBSYSTEM=="pci", ATTR{{vendor}}=="0x10de", {}ATTR{{remove}}="1"'


@pytest.mark.parametrize(
    ("condition", "takes"),
    [
        ('ATTR{class}=="0x03[0-9]*", ', True),
        ('ATTR{class}=="0x030200", ', True),
        ("", True),
        ('ATTR{class}=="0x040300", ', False),
        ('ATTR{class}=="0x0c0330", ', False),
    ],
)
def test_a_udev_rule_that_takes_cards_off_the_bus_is_named(condition: str, takes: bool) -> None:
    line = RULE.format(condition)
    assert findings({UDEV: f"{line}\n"}) == ({"card-removed-by-udev": [line]} if takes else {})


def test_bbswitch_that_takes_the_power_at_each_boot_is_named() -> None:
    line = "/etc/modprobe.d/bbswitch.conf:1:options bbswitch load_state=0 unload_state=1"
    assert findings({UDEV: f"{line}\n"}) == {"card-removed-by-udev": [line]}


@pytest.mark.parametrize(
    ("mode", "private"), [("432", True), ("0660", True), ("0x1b0", True), ("0666", False), ("438", False)]
)
def test_an_option_that_keeps_the_device_files_from_others_is_named(mode: str, private: bool) -> None:
    line = f"/etc/modprobe.d/nvidia.conf:1:options nvidia NVreg_DeviceFileMode={mode} NVreg_DeviceFileGID=44"
    assert findings({MODPROBE: f"{line}\n"}) == ({"device-files-private": [line]} if private else {})
