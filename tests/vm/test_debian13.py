"""Debian 13 with its own R550: NVIDIA's open module in its kernel, without a GPU, beside another version, and signed.

The packages were installed, and DKMS compiled and signed the module, when the image was made. Of the card, nothing but
its chip's number works. Each test goes on where the last one ended: the machine boots four times in all.
"""

from __future__ import annotations

import shutil
import subprocess

from lab.config import HostOptions, Machine
from lab.vm import firmware, qemu
from tests.real.test_debian13 import DAEMON
from tests.vm.real import R535, real_module, send
from tests.vm.whole import LOADED, PLUG, UNPLUG, Whole, both

HOST = "vm13"
OPTIONS = HostOptions(profile="small", distro="trixie", kind="vm", real="packages")
VERSION, OLDER = "550.163.01", "535.309.01"
KEY = "/var/lib/dkms/mok.pub"
#: Lets drivers read the chip's number (`lab.vm.card`) until the machine is switched off.
IDENTIFY = "setpci -d 10de: f0.b=1"
UNLOAD = """
for module in nvidia_uvm nvidia_drm nvidia_modeset nvidia; do
  [ ! -d "/sys/module/$module" ] || rmmod "$module" || exit
done
dmesg -C
"""
LOAD_OLDER = f"{UNLOAD}insmod /root/older.ko"


def verb(whole: Whole, name: str) -> subprocess.CompletedProcess[str]:
    return whole.invoke(name, "--hosts", HOST, "--roles", "base,driver", "--var", "stack=debian-13-r550")


def test_the_open_module_refuses_a_dead_card_at_the_first_boot(whole: Whole) -> None:
    assert not {"nouveau", "nvidia"} & whole.modules()
    dead = whole.ask("dmesg -C; modprobe nvidia")
    assert "not supported by open" in whole.keep("open-module-dead-card", both(dead) + whole.kernel_log("."))


def test_the_open_module_finds_no_gpu(whole: Whole) -> None:
    none = whole.ask(f"{UNPLUG}; dmesg -C; modprobe nvidia")
    assert none.returncode != 0
    assert "NVRM: No NVIDIA GPU found." in whole.keep("open-module-no-gpu", both(none) + whole.kernel_log("."))
    whole.run(PLUG)


def test_the_open_module_cannot_start_a_card_that_says_nothing_but_its_name(whole: Whole) -> None:
    silent = whole.ask(f"{IDENTIFY}; dmesg -C; modprobe nvidia && nvidia-smi")
    assert whole.run(LOADED).strip() == VERSION
    text = whole.keep("open-module-silent-card", both(silent) + whole.kernel_log("."))
    assert "No devices were found" in text
    assert "RmInitAdapter failed!" in text


def test_a_module_of_another_version_is_named_and_a_reload_fixes_it(whole: Whole) -> None:
    send(whole.machine, real_module(R535, whole.run("uname -r").strip()), "/root/older.ko")
    whole.run(LOAD_OLDER)
    assert whole.run(LOADED).strip() == OLDER
    other = whole.ask("nvidia-smi")
    text = whole.keep("open-module-other-version", both(other) + whole.kernel_log("NVRM: "))
    assert "Failed to initialize NVML: Driver/library version mismatch" in text
    assert f"NVRM: API mismatch: the client has the version {VERSION}, but" in text
    audited = whole.show("audit-other-version", verb(whole, "audit").stdout)
    named = f"version-mismatch: module {OLDER} is loaded; on the disk are module and libraries of {VERSION}"
    assert named in audited
    whole.run(f"{UNLOAD}modprobe nvidia")
    assert whole.run(LOADED).strip() == VERSION
    assert "No devices were found" in both(whole.ask("nvidia-smi"))


def test_one_reboot_fixes_it_as_well(whole: Whole) -> None:
    whole.run(DAEMON + LOAD_OLDER)
    before = whole.boot_id()
    done = verb(whole, "provision")
    told = whole.show("provision-other-version", done.stdout + done.stderr)
    assert done.returncode == 0
    assert f"driver {OLDER} is loaded and {VERSION} is installed" in told
    assert whole.boot_id() != before
    assert whole.run(LOADED).strip() == VERSION


def test_secure_boot_takes_the_module_of_dkms_once_a_person_has_enrolled_its_key(whole: Whole) -> None:
    certificate = bytes.fromhex(whole.run(f"od -An -v -tx1 {KEY}").replace("\n", " "))

    def lock_down(machine: Machine) -> None:
        shutil.copyfile(qemu.VARIABLES_SECURE, qemu.variables(machine))

    whole.while_off(lock_down)
    assert "SecureBoot enabled" in whole.run("mokutil --sb-state")
    assert "nvidia" not in whole.modules()
    for name, load in (("unknown-key", "modprobe nvidia"), ("unsigned", "insmod /root/older.ko")):
        refused = whole.ask(f"dmesg -C; {load}")
        assert refused.returncode != 0
        whole.keep(f"open-module-secure-boot-{name}", both(refused) + whole.kernel_log("."))
    assert "Secure Boot is on, and no key" in whole.show("doctor-secure-boot", verb(whole, "doctor").stdout)
    done = verb(whole, "provision")
    told = whole.show("provision-secure-boot", done.stdout + done.stderr)
    assert done.returncode != 0
    assert f"mokutil --import {KEY}" in told
    whole.while_off(lambda machine: firmware.enrol(qemu.variables(machine), certificate))
    taken = whole.kernel_log("nvrm|nvidia|rejected")  # since the boot; the kernel lets nobody write to the card now
    assert "NVRM: None of the NVIDIA devices were initialized." in whole.show("secure-boot-enrolled-key", taken)
    assert "verification failed" not in taken
    assert "rejected" not in taken
