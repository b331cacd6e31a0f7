"""Tests that rules check which module, package, file or image failed: not every failure is the driver's."""

from __future__ import annotations

import re

import pytest

from tests.unit.support.known import BY_NAME, KNOWN

BAD = "Error! Bad return status for module build on kernel: 6.8.0-57-generic (x86_64)\n"
CONSULT = "Consult /var/lib/dkms/{}/build/make.log for more information.\n".format
POSTINST = (
    "dpkg: error processing package {0} (--configure):\n"
    " installed {0} package post-installation script subprocess returned error exit status 10\n"
).format
AUTOINSTALL = (
    "Autoinstall of module zfs/2.4.1 for kernel 6.19.0-1-amd64 (x86_64)\n"
    "Running the pre_build script........................(bad exit status: 1)\n"
    "Failed command:\n"
    "cd /var/lib/dkms/zfs/2.4.1/build/ && /var/lib/dkms/zfs/2.4.1/build/configure --with-config=kernel\n"
    f"{CONSULT('zfs/2.4.1')}\n"
    "Autoinstall on 6.19.0-1-amd64 failed for module(s) zfs(1).\n"
    "Error! One or more modules failed to install during autoinstall.\n"
    "run-parts: /etc/kernel/header_postinst.d/dkms exited with return code 1\n"
)
NO_RELEASE = "E: The repository 'https://mirror.example.org/deb/amd64  Release' does not have a Release file.\n"
SHIM = "docker: Error response from daemon: failed to create shim task: OCI runtime create failed: "

#: the text and the correct rule, written down before the rules were tried
TEXTS = {
    # modules of DKMS's tree
    "openmediavault-zfs#117": (AUTOINSTALL, "dkms-other-module"),
    "linuxmint#896": (
        "make -j8 KERNELRELEASE=7.0.0-28-generic all...(bad exit status: 2)\n"
        + BAD
        + CONSULT("v4l2loopback/0.12.7")
        + "dkms autoinstall on 7.0.0-28-generic/x86_64 failed for v4l2loopback(10)\n",
        "dkms-other-module",
    ),
    "damentz/liquorix-package#166": (
        BAD + CONSULT("v4l2loopback/0.12.7") + "dkms autoinstall on 6.8.4-amd64/x86_64 succeeded for fwts nvidia\n"
        "dkms autoinstall on 6.8.4-amd64/x86_64 failed for v4l2loopback(10)\n",
        "dkms-other-module",
    ),
    "openzfs/zfs#9331": (BAD + CONSULT("zfs/0.8.4") + POSTINST("zfs-dkms"), "dkms-other-module"),
    "daringer/asus-fan#38": (
        "cleaning build area...(bad exit status: 2)\n" + BAD + CONSULT("asus_fan/git"),
        "dkms-other-module",
    ),
    "strangers' make.log": (
        "/var/lib/dkms/zfs/2.0.3/build/zfs/vdev.c:12:9: error: implicit declaration of function 'x'",
        "dkms-other-module",
    ),
    "undefined in a stranger's module": (
        'ERROR: modpost: "x" [/var/lib/dkms/wireguard/1.0/build/wireguard.ko] undefined!',
        "dkms-other-module",
    ),
    "a package of a stranger's module": (POSTINST("virtualbox-dkms"), "dkms-other-module"),
    "nvidia-fs is not the driver": (BAD + CONSULT("nvidia-fs/2.17.5"), "dkms-other-module"),
    "both failed": (BAD + CONSULT("zfs/2.4.1") + BAD + CONSULT("nvidia/470.182.03"), "dkms-build"),
    "both failed, in one line": ("Autoinstall on 6.19 failed for module(s) nvidia(10) zfs(1).", "dkms-build"),
    "nvidia-container-toolkit#361": (
        BAD + CONSULT("nvidia-current/535.161.08") + POSTINST("nvidia-kernel-dkms"),
        "dkms-build",
    ),
    "xanmod/linux#323": (BAD + CONSULT("nvidia/510.108.03") + POSTINST("nvidia-dkms-510"), "dkms-build"),
    # modules that are not loaded
    "nvidia-prime#20": (
        "modprobe: ERROR: kmod_module_insert_module() could not find module by name='off'\n"
        "modprobe: ERROR: could not insert 'off': Unknown symbol in module, or unknown parameter (see dmesg)\n"
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        "module-disabled",
    ),
    "off, of a newer kmod": ("modprobe: ERROR: could not insert 'off': No such device", "module-disabled"),
    "off, of an older kmod": (
        "modprobe: FATAL: Module off not found in directory /lib/modules/5.10.0-28-amd64",
        "module-disabled",
    ),
    "optimus-manager#507": ("systemd-modules-load[252]: Module 'nvidia_uvm' is deny-listed", "module-disabled"),
    "install /bin/false": (
        "modprobe: ERROR: command_do() Error running install command '/bin/false' for module nvidia: retcode 1\n"
        "modprobe: ERROR: could not insert 'nvidia': Invalid argument",
        "module-disabled",
    ),
    "coreos-nvidia-driver#4": (
        "insmod: ERROR: could not insert module /opt/nvidia/nvidia.ko: Unknown symbol in module",
        "module-symbol-missing",
    ),
    "fl2000_drm#35": ("[ 1166.26] fl2000: Unknown symbol drm_kms_helper_poll_fini (err -2)", "module-symbol-missing"),
    "a symbol of another version": ("nvidia: Unknown symbol drm_open (err -22)", "module-of-another-kernel"),
    "nvbio-gpl#7": (
        "modprobe: ERROR: kmod_module_insert_module() could not find module by name='nvidia_331_uvm'\n"
        "cudaGetDeviceCount returned 30\n-> unknown error",
        "uvm-not-loaded",
    ),
    "ironhide#165": (
        "FATAL: Error inserting nvidia_current (/lib/modules/3.0.0/updates/dkms/nvidia.ko): No such device",
        "no-device",
    ),
    # an unreachable repository is not missing
    "libnvidia-container#160": (
        NO_RELEASE
        + "E: Failed to fetch https://mirror.example.org/deb/Packages  gnutls_handshake() failed: Error in the"
        " push function.",
        "tls-handshake",
    ),
    "nvidia-docker#714": (
        "W: Failed to fetch https://mirror.example.org/Packages  gnutls_handshake() failed: Handshake failed",
        "tls-handshake",
    ),
    "nvidia-container-toolkit#1161": (
        "Err:8 https://mirror.example.org/deb/amd64  Release\n  Could not handshake: Error in the pull function.\n"
        + NO_RELEASE,
        "tls-handshake",
    ),
    "refused, and so no Release file": (
        "Err:8 http://mirror.example.org x Release\n  403  Forbidden [IP: 192.0.2.1 80]\n" + NO_RELEASE,
        "download-refused",
    ),
    "moby#51335": (
        'Error response from daemon: Get "https://registry.example.org/v2/": net/http: TLS handshake timeout',
        "tls-handshake",
    ),
    "nvidia-container-toolkit#207": (NO_RELEASE, "repository-without-release"),
    # images and their commands
    "nvidia-docker#1454": (
        "Error response from daemon: manifest for nvidia/cuda:latest not found: manifest unknown: manifest unknown",
        "image-missing",
    ),
    "Kaixhin/dockerfiles#39": (
        "docker: Error response from daemon: manifest for own/torch:latest not found.",
        "image-missing",
    ),
    "docker-ocserv#52": (
        f'{SHIM}unable to start container process: exec: "/entrypoint.sh": permission denied: unknown.',
        "container-command-missing",
    ),
    "gpu-jupyter#39": (
        'starting container process caused: exec: "tini": executable file not found in $PATH: unknown',
        "container-command-missing",
    ),
    "walkingpad#10": ("Error: pg_config executable not found.", "build-header-missing"),
    # nothing from Hostwright failed
    "a stranger's unit": ("systemd[1]: Failed to start nginx.service - A high performance web server.", None),
    "a stranger's module": (
        "modprobe: FATAL: Module vboxdrv not found in directory /lib/modules/5.10.0-46-amd64",
        None,
    ),
    "a stranger's module in use": ("rmmod: ERROR: Module zfs is in use", None),
    "a blacklist that is meant": ("systemd-modules-load[252]: Module 'nouveau' is deny-listed", None),
}


STRANGER = "systemd-modules-load[580]: Failed to insert module 'nvhda': Exec format error"
OF_TWO = (
    "modprobe: ERROR: could not insert 'nvidia': Exec format error\n"
    "nvidia: version magic '5.4.18-100.fc30.x86_64 SMP' should be '5.4.18-200.fc31.x86_64 SMP'"
)


@pytest.mark.parametrize("text", [STRANGER, OF_TWO])
def test_a_module_of_another_kernel_is_built_again_and_no_other_kernel_is_booted(text: str) -> None:
    """hhfeuer/nvhda#16: another kernel may have no NVIDIA module."""
    failure = KNOWN.classify(text)
    assert failure is not None
    assert "build n" in failure.cure
    assert "reboot" not in failure.cure.lower()
    assert "MODULE" not in failure.cure
    assert text.splitlines()[-1] in failure.evidence


#: words with which a fix must not begin: it may lose the GPUs, or something that users need
HARSH = re.compile(r"(?:Reboot|Boot an?|Purge|Switch Secure Boot|Disable Secure Boot)\b", re.IGNORECASE)


def test_no_cure_begins_with_a_reboot_or_a_purge() -> None:
    assert [rule.name for rule in KNOWN.rules if HARSH.match(rule.cure)] == []


@pytest.mark.parametrize("source", TEXTS)
def test_the_line_that_names_the_cause_decides(source: str) -> None:
    text, rule = TEXTS[source]
    failure = KNOWN.classify(text)
    assert (failure.rule.name if failure else None) == rule


@pytest.mark.parametrize(
    "text",
    [
        "modprobe: ERROR: could not insert 'vmmon': Exec format error",
        "insmod: ERROR: could not insert module ./misc/vmmon.ko: Invalid module format",
        "insmod: error inserting 'vmmon.ko.xz': -1 Invalid module format",
        "systemd-modules-load[412]: Failed to insert module 'vmmon': Exec format error",
        "[   12.1] vmmon: version magic '5.4.18-100 SMP mod_unload ' should be '5.4.18-200 SMP mod_unload '",
        "[   12.1] vmmon: disagrees about version of symbol module_layout",
        "[   12.1] vmmon: Unknown symbol pci_find_bus (err -22)",
        "kernel: module vmmon: .gnu.linkonce.this_module section size must match the kernel's built struct module size",
        "depmod: WARNING: /lib/modules/5.10.0-46-amd64/misc/vmmon.ko disagrees about version of symbol pci_find_bus",
    ],
)
def test_a_module_of_another_kernel_is_named_whosever_it_is(text: str) -> None:
    failure = KNOWN.classify(text)
    assert failure is not None
    assert failure.rule.name == "module-of-another-kernel"
    assert "module vmmon was built" in failure.cause
    assert "build vmmon again" in failure.cure
    assert "nvidia" not in f"{failure.cause} {failure.cure}".lower()
    assert failure.rule.finding((failure.evidence,)).cause == failure.cause


IPMI = "[    4.009675] nvidia: Unknown symbol ipmi_create_user (err -2)"
IPMI_MODPROBE = "modprobe: ERROR: could not insert 'nvidia': Unknown symbol in module, or unknown parameter (see dmesg)"


@pytest.mark.parametrize("text", [IPMI, f"{IPMI_MODPROBE}\n{IPMI}", f"{IPMI}\n{IPMI_MODPROBE}"])
def test_a_symbol_that_no_loaded_module_has_is_named_and_nothing_is_built_again(text: str) -> None:
    failure = KNOWN.classify(text)
    assert failure is not None
    assert failure.rule.name == "module-symbol-missing"
    assert IPMI in failure.evidence
    assert "module nvidia calls" in failure.cause
    assert "modprobe -R symbol:ipmi_create_user" in failure.cure
    assert "modprobe ipmi_devintf" in failure.cure
    assert not {"built", "build", "rebuild", "dkms"} & set(f"{failure.cause} {failure.cure}".lower().split())


GENERAL = (
    "NVRM: The NVIDIA probe routine was not called for 1 device(s).\nNVRM: This can occur when a driver such as:\n"
    "NVRM: nouveau, rivafb, nvidiafb or rivatv\nNVRM: was loaded and obtained ownership of the NVIDIA device(s)."
)


@pytest.mark.parametrize(
    "driver, rule",
    [
        ("vfio-pci", "card-of-another-driver"),
        ("pci-stub", "card-of-another-driver"),
        ("nvidiafb", "card-of-another-driver"),
        ("nvgrace_gpu_vfio_pci", "card-of-another-driver"),
        ("nouveau", "nouveau-in-use"),
        ("nova_core", "nouveau-in-use"),
    ],
)
def test_the_driver_that_has_the_card_is_named(driver: str, rule: str) -> None:
    bound = f"[10582.980815] NVRM: GPU 0000:01:00.0 is already bound to {driver}."
    failure = KNOWN.classify(f"modprobe: ERROR: could not insert 'nvidia': No such device\n{bound}\n{GENERAL}")
    assert failure is not None
    assert failure.rule.name == rule
    assert bound in failure.evidence
    own = ("the nouveau driver holds the GPU", "the kernel's own driver nova")
    assert failure.cause.startswith((f"{driver} holds the card", *own))
    assert driver in failure.cure or driver not in {"nouveau", "nova_core"}


def test_the_evidence_names_whose_module_it_is() -> None:
    failure = KNOWN.classify(AUTOINSTALL)
    assert failure is not None
    assert "zfs" in failure.evidence
    assert "R470" not in BY_NAME["dkms-other-module"].cure


def test_what_fails_without_a_name_is_not_said_to_be_nvidias() -> None:
    cure = BY_NAME["dkms-build"].cure
    assert cure.startswith("Find the first error in make.log of the failed module")
    assert "If the module is nvidia's" in cure
