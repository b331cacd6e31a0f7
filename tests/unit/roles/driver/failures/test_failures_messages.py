"""The driver's failures are known by their messages, in the wordings of public reports."""

from __future__ import annotations

import time

import pytest

from tests.unit.support.known import KNOWN

MAKE_LOG = "/build/NVIDIA-Linux-x86_64-304.125/kernel/nv.c:2029:30: error: 'struct file' has no member named 'f_dentry'"
LOST = "Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error."
WRAPPED = (
    "WARNING: You do not appear to have an NVIDIA GPU supported by the 410.48\n\n         NVIDIA Linux graphics driver"
)
IGNORED = (
    "host docker[1]: WARNING: Ignoring CC version mismatch:\nhost docker[1]: The kernel was built with gcc 4.9.2\n"
)
UNLOADABLE = "host docker[1]: ERROR: Unable to load the kernel module 'nvidia.ko'.  This happens most"

WORDINGS = (
    ("no-compiler", "       error: command 'gcc-5' failed: No such file or directory"),
    ("no-compiler", "Error: [Errno 2] No such file or directory: 'gcc'"),
    ("no-compiler", "/bin/sh: 1: gcc-12: not found"),
    ("no-headers", "> The Module.symvers file is missing, which"),
    ("no-headers", "==> ERROR: Missing 6.2.1-zen1-1-zen kernel headers for module nvidia/525.89.02."),
    (
        "no-headers",
        "<command-line>: fatal error: /lib/modules/6.2/build/include/linux/autoconf.h: No such file or directory",
    ),
    ("compiler-mismatch", "-> The CC version check failed:"),
    ("compiler-mismatch", IGNORED + UNLOADABLE),
    ("compiler-mismatch", "gcc: error: unrecognized command-line option '-mretpoline-external-thunk'"),
    ("gpl-only-symbol", "ERROR: modpost: GPL-incompatible module gdrdrv.ko uses GPL-only symbol 'cc_mkdec'"),
    ("module-not-signed", "Loading of module with unavailable key is rejected"),
    ("module-not-signed", "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7"),
    ("dkms-build", MAKE_LOG),
    ("dkms-build", "nvidia-uvm/uvm_pmm_gpu.c:2580:2: 错误：‘#else’ 没有匹配的 ‘#if’"),
    ("dkms-build", "make[5]: *** [/usr/lib/modules/6.14/build/scripts/Makefile.build:207: nvidia/nv-pat.o] Fehler 1"),
    ("dkms-build", "Building DKMS module 'nvidia-367.35' for kernel-4.7.2_1... FAILED!"),
    ("module-of-another-kernel", "facetimehd: disagrees about version of symbol module_layout"),
    ("module-of-another-kernel", "insmod: ERROR: could not insert module x.ko: Invalid module format"),
    (
        "module-of-another-kernel",
        "nvidia: version magic '5.4.18-100 SMP mod_unload ' should be '5.4.18-200 SMP mod_unload '",
    ),
    ("peermem-unusable", "nv_peer_mem: Unknown symbol ib_register_peer_memory_client (err 0)"),
    (
        "peermem-unusable",
        "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further",
    ),
    ("gpu-bar-invalid", "               NVRM: BAR1 is 0M @ 0x0 (PCI:0000:0a:00.0)"),
    ("gpu-bar-invalid", "pcieport 0000:02:01.0: BAR 15: no space for [mem size 0x18000000 64bit pref]"),
    ("gpu-bar-invalid", "pci 0000:01:00.0: BAR 1 [mem size 0x10000000 64bit pref]: can't assign; no space"),
    ("iommu-fault", "DMAR: [fault reason 05] PTE Write access is not set"),
    (
        "iommu-fault",
        "NVRM: memdescMapIommu: 0x800000d87910000-0x800000d87910fff is not addressable by GPU 0x100 [0x0-0x7f]",
    ),
    ("iommu-fault", "nvidia 0000:01:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x000e address=0x0 flags=0x0020]"),
    ("gpu-unsupported", "NVRM: installed in this system requires use of the NVIDIA open kernel modules."),
    ("no-device", "NVRM: No NVIDIA graphics adapter found!"),
    ("no-device", WRAPPED),
    ("version-mismatch", "kernel version 470.141.3 does not match DSO version 515.65.1 -- cannot find working devices"),
    ("gpu-lost", LOST),
    ("gpu-lost", "NVRM: GPU at PCI:0000:3b:00: GPU-1 has fallen off\nthe bus"),
    ("no-device", "NVRM: request_mem_region failed for 16M @ 0xc4000000. This can occur when a driver such as rivatv"),
    ("no-headers", "or use the --kernelsourcedir option to tell DKMS where it's located"),
    ("gpu-init-failed", "NVRM: RmInitAdapter: Cannot initialize GSP firmware RM"),
    ("sxid", "nvidia-nvswitch1: SXid (PCI:0000:84:00.0): 12028, Data {0x000001c0, 0x00bd5c8a}"),
    (
        "mlx5-fault",
        "mlx5_core 0000:5e:00.0: wait_func:1101:(pid 12): ACCESS_REG(0x805) timeout. Will cause a leak of a",
    ),
    ("no-compiler", "gcc: fatal error: cannot execute 'cc1plus': execvp: No such file or directory"),
    ("no-compiler", "gcc: error trying to exec 'cc1plus': execvp: No such file or directory"),
    ("no-headers", "././include/linux/kconfig.h:5:10: fatal error: 'generated/autoconf.h' file not found"),
    (
        "no-headers",
        "make[1]: Entering directory '/usr/lib/modules/4.19.113-1/build'\n"
        "make[1]: *** No rule to make target 'modules'.  Stop.",
    ),
    ("compiler-mismatch", "gcc-version-check failed:\n\nThe compiler used to compile the kernel (gcc 4.9)"),
    ("module-in-use", "WARNING: An NVIDIA kernel module 'nvidia-drm' appears to be already loaded in your kernel."),
    (
        "nouveau-in-use",
        "NVRM: The NVIDIA probe routine was not called for 3 device(s).\nNVRM: This can occur when a driver such as:\n"
        "NVRM: nouveau, rivafb, nvidiafb or rivatv",
    ),
    ("stale-dkms", "Error! Module version 1.0 for nvidia.ko\nexactly matches what is already found in kernel 5.15."),
    ("dkms-build", "fl2000_drm.c:120:10: error: ‘const struct drm_driver’ has no member named ‘lastclose’"),
    ("dkms-build", "nvidia/libspdm_rsa.c:93:15: error: implicit declaration of function ‘crypto_akcipher_verify’"),
    (
        "dkms-build",
        "make[2]: *** [/usr/src/kernel-headers-6.12.7_1/Makefile:1937: /var/lib/dkms/nvidia/470/build] Chyba 2",
    ),
    ("dkms-build", "Error! Build of nct6687.ko failed for: 6.15.2-arch1-1 (x86_64)"),
    ("dkms-build", "Errors were encountered while processing:\n nvidia-dkms-575-open\n nvidia-headless-575-open"),
    ("module-not-signed", "Error: The kernel module failed to load. Secure boot is enabled on this system."),
    ("uvm-not-loaded", "systemd-modules-load[1054]: Failed to insert module 'nvidia_uvm': Cannot allocate memory"),
    ("module-missing", "modprobe: FATAL: Module nvidia not found in directory /lib/modules/5.15.0-91-generic"),
    ("row-remap-failed", "NVRM: Xid (PCI:0000:65:00): 64, pid='N/A', Row Remapper: Failed to remap row"),
    ("xid-nvlink-nonfatal", "NVRM: Xid (PCI:...): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 11"),
    ("xid-fatal", "NVRM: Xid (PCI:0000:dc:00): 45, pid=18, name=python3, Ch 00000001 caused by previous Xid 149"),
    ("xid-fatal", "NVRM: GPU6 RPC event history (CPU <- GSP):"),
    ("gpu-lost", "nvidia 0000:01:00.0: Unable to change power state from D3cold to D0, device inaccessible"),
    ("gpu-permission", "open(/dev/nvidiactl) failed: Permission denied"),
    (
        "gsp-firmware-missing",
        "nvidia 0000:01:00.0: Direct firmware load for nvidia/525.60.11/gsp_ad10x.bin failed with -2",
    ),
    ("mlx5-fault", "mlx5_core: probe of 0000:01:00.0 failed with error -22"),
    ("libcuda-not-found", "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory"),
    ("xid-application", "NVRM: Xid (0000:03:00): 14, Channel 00000001"),
    ("xid-application", "NVRM: Xid (PCI:0000:01:00): 32, Channel ID 00000000 intr 00004000"),
)
HARMLESS = (
    IGNORED,
    "nvidia: module verification failed: signature and/or required key missing - tainting kernel",
    "mount error(126): Required key not available",
    "pcieport 0000:05:01.0: BAR 15: no space for [mem size 0x00200000 64bit pref]",
    "pcieport 0000:05:01.0: BAR 13: failed to assign [io  size 0x1000]",
    "mlx5_core 0000:5e:00.0: Port module event: module 0, Cable plugged",
    "Port 1:\n\tState: Active\n\tPhysical state: LinkUp",
    "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  358.16  Mon Nov 16 19:25:55 PST 2015",
    "vfio-pci 0000:01:00.0: resetting",
    "Good news! Module version 470.57 for nvidia.ko\nexactly matches what is already found in kernel 5.10.0.",
    "host:1:1 [0] misc/cudawrap.cc:179 NCCL WARN Failed to find CUDA library libcuda.so (NCCL_CUDA_PATH='') : ",
    "mlx5_core 0000:01:00.0: firmware version: 14.32.1010",
    "conftest.c:12:9: error: too few arguments",
)


@pytest.mark.parametrize("name, text", WORDINGS)
def test_a_failure_is_known_in_all_its_wordings(name: str, text: str) -> None:
    failure = KNOWN.classify(f"before\n{text}\nafter\n")
    assert failure is not None
    assert failure.rule.name == name


@pytest.mark.parametrize("text", HARMLESS)
def test_what_healthy_hosts_print_too_is_no_failure(text: str) -> None:
    assert KNOWN.classify(f"before\n{text}\nafter\n") is None


def test_bus_refusal_explains_a_card_that_does_not_start() -> None:
    text = (
        "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\nNVRM: BAR1 is 0M @ 0x0\n"
        "NVRM: The NVIDIA probe routine failed for 1 device(s).\nNVRM: GPU 0000:09:00.0: RmInitAdapter failed!"
    )
    assert KNOWN.named(text) == ("gpu-bar-invalid", text.partition("\n")[0])


def test_a_fatal_xid_is_named_before_those_of_programs() -> None:
    text = "NVRM: Xid (PCI:0000:cb:00): 13, pid=1\nNVRM: Xid (PCI:0000:cb:00): 48, pid=1\n"
    assert KNOWN.named(text) == ("xid-fatal", "NVRM: Xid (PCI:0000:cb:00): 48, pid=1")


@pytest.mark.parametrize("text", ["*** [ nv/", "Ignoring CC version mismatch", "insert nvidia", "BAR 1 [mem size 0x1"])
def test_long_texts_are_read_in_time(text: str) -> None:
    output = text * (256 * 1024 // len(text))
    begin = time.process_time()
    assert KNOWN.classify(output) is None
    assert time.process_time() - begin < 5
