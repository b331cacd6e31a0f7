"""What only a whole machine can show: real modules, reboots, signatures, another kernel.

Each test goes on where the last one ended: the machine boots five times in all.
"""

from __future__ import annotations

import shutil

from lab.config import HostOptions, Machine
from lab.vendor.driver import VERSION
from lab.vm import disks, firmware, qemu
from tests.vm.real import R470, real_module, send
from tests.vm.whole import LOADED, PLUG, UNPLUG, Whole, both

HOST = "vm01"
OPTIONS = HostOptions(profile="small", kind="vm")


def provision(whole: Whole) -> str:
    done = whole.invoke("provision", "--hosts", HOST, "--roles", "base,driver")
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def test_nouveau_is_loaded_for_the_card_at_the_first_boot(whole: Whole) -> None:
    assert "nouveau" in whole.modules()
    whole.keep("nouveau-probes-a-dead-card", whole.kernel_log("nouveau|10de"))


def test_the_real_module_loads_and_finds_no_gpu(whole: Whole) -> None:
    send(whole.machine, real_module(R470, whole.run("uname -r").strip()), "/root/nvidia.ko")
    dead = whole.ask("modprobe drm; rmmod nouveau; dmesg -C; insmod /root/nvidia.ko")
    text = whole.keep("real-module-dead-card", both(dead) + whole.kernel_log("."))
    assert "installed in this system is not supported by the" in text
    none = whole.ask(f"dmesg -C; {UNPLUG}; insmod /root/nvidia.ko")
    text = whole.keep("real-module-no-gpu", both(none) + whole.kernel_log("."))
    assert none.returncode != 0
    assert "NVRM: No NVIDIA GPU found." in text
    whole.run(PLUG)


def test_the_kernel_loads_the_module_that_dkms_built(whole: Whole) -> None:
    mirrored = whole.invoke("mirror", "--stack", "lab")
    assert mirrored.returncode == 0, mirrored.stderr
    provision(whole)
    assert whole.run(LOADED).strip() == VERSION
    built = whole.show("dkms-status", whole.run("dkms status"))
    assert f"{VERSION}, {whole.run('uname -r').strip()}" in built
    whole.keep("out-of-tree-module-loads", whole.kernel_log("nvidia.*(taint|out-of-tree)"))
    assert "Tesla T4" in whole.run("nvidia-smi -L")
    assert "Kernel driver in use: nvidia" in whole.show("card-driven", whole.run("lspci -nnk -d 10de:"))


#: Builds the installed source under another version and puts that module in the kernel, as an upgrade leaves it.
_OTHER = """
cp -r /usr/src/nvidia-{version} /root/other
echo '#define NV_VERSION_STRING "470.161.03"' >/root/other/nv-version.h
make -C /root/other NV_EXCLUDE_BUILD_MODULES='nvidia-uvm nvidia-modeset nvidia-drm' IGNORE_CC_MISMATCH=1 >/dev/null
systemctl stop nvidia-persistenced
for module in nvidia_uvm nvidia_drm nvidia_modeset nvidia; do
  [ ! -d "/sys/module/$module" ] || rmmod "$module"
done
insmod /root/other/nvidia.ko
"""


def test_one_reboot_cures_a_module_of_another_version(whole: Whole) -> None:
    whole.run(_OTHER.format(version=VERSION))
    assert whole.run(LOADED).strip() == "470.161.03"
    whole.show("nvidia-smi-other-version", both(whole.ask("nvidia-smi")))
    before = whole.boot_id()
    told = provision(whole)
    assert f"driver 470.161.03 is loaded and {VERSION} is installed" in whole.show("provision-other-version", told)
    assert whole.boot_id() != before
    assert whole.run(LOADED).strip() == VERSION
    whole.show("boots", whole.run("journalctl --list-boots --no-pager"))


def test_nouveau_is_gone_after_the_reboot(whole: Whole) -> None:
    modules = whole.modules()
    whole.show("modules-after-the-reboot", " ".join(sorted(modules)))
    assert "nouveau" not in modules
    assert {"nvidia", "nvidia_uvm"} <= modules
    assert whole.kernel_log("nouveau") == ""


#: Signs copies of the module that DKMS built with two keys of our own, of which one is enrolled afterwards.
_SIGN = """
for key in enrolled unknown; do
  mkdir -p "/root/$key"; cd "/root/$key"
  openssl req -new -x509 -newkey rsa:2048 -nodes -days 36500 -subj "/CN=lab key, $key/" \\
    -addext extendedKeyUsage=codeSigning -keyout key -outform DER -out certificate 2>/dev/null
  cp "$(modinfo -n nvidia)" nvidia.ko
  "/lib/modules/$(uname -r)/build/scripts/sign-file" sha256 key certificate nvidia.ko
  modinfo -F signer nvidia.ko
done
"""


def test_secure_boot_takes_only_a_module_whose_key_is_enrolled(whole: Whole) -> None:
    assert whole.run(_SIGN).splitlines() == ["lab key, enrolled", "lab key, unknown"]
    certificate = bytes.fromhex(whole.run("od -An -v -tx1 /root/enrolled/certificate").replace("\n", " "))

    def lock_down(machine: Machine) -> None:
        disks.save(machine, "driver")
        shutil.copyfile(qemu.VARIABLES_SECURE, qemu.variables(machine))
        firmware.enrol(qemu.variables(machine), certificate)

    whole.while_off(lock_down)
    state = whole.show("secure-boot-state", whole.run("mokutil --sb-state; mokutil --list-enrolled | grep CN"))
    assert "SecureBoot enabled" in state
    assert "lab key, enrolled" in state
    assert "nvidia" not in whole.modules()
    for name, module in (("unsigned", "nvidia"), ("unknown-key", "/root/unknown/nvidia.ko")):
        refused = whole.ask(f"dmesg -C; {'modprobe' if name == 'unsigned' else 'insmod'} {module}")
        assert refused.returncode != 0
        whole.keep(f"secure-boot-{name}", both(refused) + whole.kernel_log("."))
    doctor = whole.invoke("doctor", "--hosts", HOST)
    assert "Secure Boot is on" in whole.show("doctor-secure-boot", doctor.stdout)
    taken = whole.ask("dmesg -C; insmod /root/enrolled/nvidia.ko && " + LOADED)
    whole.keep("secure-boot-enrolled-key", both(taken) + whole.kernel_log("."))
    assert taken.stdout.strip() == VERSION


#: The newest of the release's second kernel series. Its metapackage is not on every mirror.
_UPGRADE = """
apt-get update >/dev/null 2>&1 || true
known=$(apt-cache pkgnames linux-image-6.1.0-0.deb11 | grep -E '^linux-image-[0-9.-]*deb11[0-9.]*-amd64$')
newest=$(echo "$known" | sort -V | tail -n 1)
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$newest" 2>&1
"""


def test_a_kernel_upgrade_without_headers_boots_without_a_driver(whole: Whole) -> None:
    def unlock(machine: Machine) -> None:
        # With Secure Boot, the refused signature would be the finding, and not the missing headers.
        shutil.copyfile(qemu.VARIABLES, qemu.variables(machine))

    whole.while_off(unlock)
    whole.keep("kernel-upgrade-without-headers", whole.run(_UPGRADE))
    whole.reboot()
    assert whole.run("uname -r").startswith("6.1.")
    missing = whole.ask("modprobe nvidia")
    assert missing.returncode != 0
    whole.keep("modprobe-after-kernel-upgrade", both(missing))
    whole.show("nvidia-smi-after-kernel-upgrade", both(whole.ask("nvidia-smi")))
    doctor = whole.invoke("doctor", "--hosts", HOST)
    assert "headers" in whole.show("doctor-after-kernel-upgrade", doctor.stdout)
